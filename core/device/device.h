// SPDX-License-Identifier: Apache-2.0
// Device: turns the operations that layers need into steps of a Program.
//
// Element-wise operations are not here: core/device/map.h implements them once for all layouts and
// asks the device where they run. All tensors are referred to by id; a device chooses the versions,
// and Program converts between operations.
#pragma once

#include <memory>
#include <string>

#include "core/device/geometry.h"
#include "core/device/host_memory.h"
#include "core/device/precision.h"
#include "core/device/program.h"

namespace cafetiere {

/// Where a gradient goes. That of a parameter is overwritten by the first writer of a pass, and
/// added to by later writers and later passes (RunContext::accumulate), like Caffe's diffs.
struct Gradient {
  TensorId tensor = kNoTensor;
  bool parameter = true;
  bool add = false;  ///< an earlier step of this program has already written it (a shared
                     ///< parameter)

  /// A sum that is not a parameter's gradient: always overwritten.
  static Gradient plain(TensorId id) { return {id, false, false}; }
  bool adds(const RunContext& run) const { return add || (parameter && run.accumulate); }
};

/// The terms summed per channel: a, and a * (b - centre).
struct ChannelTerms {
  TensorId a;
  TensorId b = kNoTensor;       ///< kNoTensor: no products
  TensorId centre = kNoTensor;  ///< one value per channel; kNoTensor: 0
};

/// The queue of a device with its own memory: runs kernels one after another, in the order of
/// submission, while the host continues.
class Queue {
 public:
  virtual ~Queue() = default;
  /// Submits a kernel, which must live until wait() has returned.
  virtual void submit(const Kernel& kernel) = 0;
  /// Called within kernels of this queue: copies between host and device memory.
  virtual void copy(void* to, const void* from, int64_t bytes) = 0;
  /// Waits until all kernels have run.
  virtual void wait() = 0;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual const char* name() const = 0;

  /// Zero-filled memory for the buffers of a program, at the address that kernels use. Fails with
  /// kOutOfMemory.
  virtual Result<Memory> allocate(Space space, int64_t bytes);
  /// The queue for steps in Space::kDevice, owned by the device; nullptr for a device that works in
  /// host memory.
  virtual Queue* queue() { return nullptr; }
  /// Where a step of map.h or row_major.h runs: on the device if it has that kernel, otherwise on
  /// the host, with copies before and after. Only name and kernel of the step are set.
  virtual Space space_of(const Step&) const { return Space::kHost; }

  /// dst = conv(src, weights) + bias, followed by max(., 0) if `relu`. bias may be kNoTensor.
  virtual void convolution(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                           TensorId weights, TensorId bias, TensorId dst, bool relu) = 0;
  /// Computes the gradient with respect to src.
  virtual void convolution_backward_data(Program&, const std::string& name, const ConvGeometry&,
                                         TensorId diff_dst, TensorId weights,
                                         TensorId diff_src) = 0;
  virtual void convolution_backward_weights(Program&, const std::string& name, const ConvGeometry&,
                                            TensorId src, TensorId diff_dst,
                                            Gradient diff_weights) = 0;

  /// The same for inner products; src and diff_src have shape (n, k), dst (n, outputs).
  virtual void inner_product(Program&, const std::string& name, const InnerProductGeometry&,
                             TensorId src, TensorId weights, TensorId bias, TensorId dst,
                             bool relu) = 0;
  virtual void inner_product_backward_data(Program&, const std::string& name,
                                           const InnerProductGeometry&, TensorId diff_dst,
                                           TensorId weights, TensorId diff_src) = 0;
  virtual void inner_product_backward_weights(Program&, const std::string& name,
                                              const InnerProductGeometry&, TensorId src,
                                              TensorId diff_dst, Gradient diff_weights) = 0;

  /// Max pooling also writes `index` (h * in_w + w of the selected element; -1 for an empty
  /// window), in a device-specific form unless the geometry has shows_index.
  virtual void pooling(Program&, const std::string& name, const PoolGeometry&, TensorId src,
                       TensorId dst, TensorId index) = 0;
  virtual void pooling_backward(Program&, const std::string& name, const PoolGeometry&,
                                TensorId diff_dst, TensorId index, TensorId diff_src) = 0;

  /// `scale` may be used to keep k + alpha / size * sum for the backward pass.
  virtual void lrn(Program&, const std::string& name, const LrnGeometry&, TensorId src,
                   TensorId scale, TensorId dst) = 0;
  virtual void lrn_backward(Program&, const std::string& name, const LrnGeometry&, TensorId src,
                            TensorId scale, TensorId dst, TensorId diff_dst, TensorId diff_src) = 0;

  /// Per channel (axis 1), over batch and pixels: mean and biased variance of src.
  virtual void channel_moments(Program&, const std::string& name, TensorId src, TensorId mean,
                               TensorId variance) = 0;
  /// Per channel: the sum of a and, if b is set, of the products.
  virtual void channel_sums(Program&, const std::string& name, const ChannelTerms&, Gradient sum,
                            Gradient products) = 0;

  /// Softmax over axis 1 and its gradient.
  virtual void softmax(Program&, const std::string& name, TensorId src, TensorId dst) = 0;
  virtual void softmax_backward(Program&, const std::string& name, TensorId dst, TensorId diff_dst,
                                TensorId diff_src) = 0;

  /// dst = softmax(Q K^T / sqrt(width)) V for each head; `log_sums` (n * heads, tokens) keeps the
  /// logarithm of the softmax divisor of each query for the backward pass.
  virtual void attention(Program&, const std::string& name, const AttentionGeometry&, TensorId qkv,
                         TensorId dst, TensorId log_sums) = 0;
  virtual void attention_backward(Program&, const std::string& name, const AttentionGeometry&,
                                  TensorId qkv, TensorId dst, TensorId log_sums, TensorId diff_dst,
                                  TensorId diff_qkv) = 0;
};

/// Plain loops over row-major tensors: slow, always available, and the reference for other devices.
std::unique_ptr<Device> make_ref_device();

/// Batched small matrix products (libxsmm) and vector loops; vector lanes hold images or channels,
/// depending on the shapes.
std::unique_ptr<Device> make_cpu_device(Precision precision = Precision::kFloat32);

}  // namespace cafetiere
