// SPDX-License-Identifier: Apache-2.0
// The forms of convolution on the CPU, listed in core/device/cpu/convolution.cc. For each,
// declines() returns why it does not accept a planar() geometry; an empty string means that it
// does.
#pragma once

#include <string>
#include <vector>

#include "core/device/cpu/taps.h"
#include "core/device/device.h"

namespace cafetiere {

/// Whether the kernel is 1 x 1, without stride or padding.
inline bool is_pointwise(const ConvGeometry& g) {
  for (size_t i = 0; i < g.in.size(); ++i) {
    if (g.kernel[i] != 1 || g.stride[i] != 1 || g.pad[i] != 0) return false;
  }
  return true;
}

/// The geometry as a convolution over two spatial axes, if possible: a single axis becomes a row,
/// and the pixels of a 1 x 1 kernel without stride or padding become one long row.
inline ConvGeometry planar(ConvGeometry g) {
  const bool pointwise = is_pointwise(g);
  if (!pointwise && g.spatial() != 1) return g;
  if (pointwise) {
    g.in = g.out = {g.in_pixels()};
    g.kernel = g.stride = g.dilation = {1};
    g.pad = {0};
  }
  for (auto* v : {&g.in, &g.out, &g.kernel, &g.stride, &g.dilation}) v->insert(v->begin(), 1);
  g.pad.insert(g.pad.begin(), 0);
  return g;
}

/// "20 to 50 channels", for `explain`.
inline std::string channel_widths(int64_t in, int64_t out) {
  return std::to_string(in) + " to " + std::to_string(out) + " channels";
}

/// Why no two-axis form accepts the geometry; empty if it has two axes.
inline std::string not_planar(const ConvGeometry& g) {
  return g.spatial() == 2 ? std::string() : std::to_string(g.spatial()) + " spatial axes";
}

/// dst(pixel) = sum over taps of W(tap) src(tap's pixel): the common form of the forward pass and
/// the data gradient of a convolution over two axes.
struct Correlation {
  int64_t n, in_channels, out_channels, group;  // channels of src and dst
  int64_t in_h, in_w, out_h, out_w, kernel_h, kernel_w;
  AxisTaps rows, cols;  ///< for the data gradient, with flipped kernel indices

  int64_t group_in() const { return in_channels / group; }
  int64_t group_out() const { return out_channels / group; }
  int64_t kernel_size() const { return kernel_h * kernel_w; }
  /// The properties on which the choice of a form depends, for the kernel's description.
  std::string widths() const { return channel_widths(group_in(), group_out()); }
};

inline Correlation forward_correlation(const ConvGeometry& g) {
  Correlation c{g.n,      g.channels, g.outputs,   g.group,     g.in[0], g.in[1],
                g.out[0], g.out[1],   g.kernel[0], g.kernel[1], {},      {}};
  c.rows = forward_taps(g.out[0], g.in[0], g.kernel[0], g.stride[0], g.pad[0], g.dilation[0]);
  c.cols = forward_taps(g.out[1], g.in[1], g.kernel[1], g.stride[1], g.pad[1], g.dilation[1]);
  return c;
}

inline Correlation backward_correlation(const ConvGeometry& g) {
  Correlation c{g.n,     g.outputs, g.channels,  g.group,     g.out[0], g.out[1],
                g.in[0], g.in[1],   g.kernel[0], g.kernel[1], {},       {}};
  c.rows = backward_taps(g.in[0], g.out[0], g.kernel[0], g.stride[0], g.pad[0], g.dilation[0]);
  c.cols = backward_taps(g.in[1], g.out[1], g.kernel[1], g.stride[1], g.pad[1], g.dilation[1]);
  return c;
}

/// Emits the step that packs the `size` weights of a convolution in the order in which its kernel
/// reads them: pack(weights, packed, block) for each of `blocks` blocks. Returns the packed buffer.
template <class Element = float, class Pack>
BufferId pack_step(Program& p, const std::string& name, TensorId weights, int64_t size,
                   int64_t blocks, Pack pack) {
  const Format format = sizeof(Element) == 2 ? Format::kBFloat16 : Format::kFloat32;
  const BufferId packed = p.scratch(size, format);
  Step step;
  step.name = name + " pack";
  step.kernel = "weights";
  step.reads = {p.read(weights, Layout::kRowMajor)};
  step.writes = {packed};
  step.make = [=, read = step.reads[0]](const Binder& at) {
    return Kernel{int(blocks), [pack, from = at(read), to = at.as<Element>(packed)](int block) {
                    pack(from, to, block);
                  }};
  };
  p.step(std::move(step));
  return packed;
}

/// The step, but for its kernel, that adds the parts of a weight gradient in order and writes it as
/// Caffe stores it: (outputs, channels / group, kh, kw).
inline Step unpack_step(Program& p, const std::string& name, int64_t parts, BufferId partial,
                        const Gradient& gradient) {
  Step step;
  step.name = name + " unpack";
  step.kernel = "sum of " + std::to_string(parts) + " parts";
  step.reads = {partial};
  step.writes = {p.write(gradient.tensor, Layout::kRowMajor)};
  return step;
}

/// The number of weights of a convolution.
inline int64_t weight_count(const ConvGeometry& g) {
  return g.outputs * (g.channels / g.group) * g.kernel_size();
}

/// Batch innermost (S C N): odd channel counts waste no lanes. At most 256 kernel elements.
namespace batch_innermost {
std::string declines(const ConvGeometry&);
void convolution(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu);
void backward_data(Program&, const std::string& name, const ConvGeometry&, TensorId diff_dst,
                   TensorId weights, TensorId diff_src);
void backward_weights(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                      TensorId diff_dst, Gradient diff_weights);
}  // namespace batch_innermost

/// Channels last (N S C): for wide layers and small batches.
namespace channels_last {
std::string declines(const ConvGeometry&);
std::string declines_backward_data(const ConvGeometry&);
void convolution(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu);
void backward_data(Program&, const std::string& name, const ConvGeometry&, TensorId diff_dst,
                   TensorId weights, TensorId diff_src);
void backward_weights(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                      TensorId diff_dst, Gradient diff_weights);
}  // namespace channels_last

/// The same in bfloat16; also inner products as convolutions over a single row.
namespace channels_last_bf16 {
std::string declines(const ConvGeometry&);
std::string declines_backward_data(const ConvGeometry&);
std::string declines_backward_weights(const ConvGeometry&);
void convolution(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu);
void backward_data(Program&, const std::string& name, const ConvGeometry&, TensorId diff_dst,
                   TensorId weights, TensorId diff_src);
void backward_weights(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                      TensorId diff_dst, Gradient diff_weights);
}  // namespace channels_last_bf16

/// 3 x 3 and 5 x 5 kernels of stride 1, channels last, with about half of the products: for wide
/// layers.
namespace winograd {
std::string declines(const ConvGeometry&);
std::string declines_backward_data(const ConvGeometry&);
std::string declines_backward_weights(const ConvGeometry&);
void convolution(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu);
void backward_data(Program&, const std::string& name, const ConvGeometry&, TensorId diff_dst,
                   TensorId weights, TensorId diff_src);
void backward_weights(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                      TensorId diff_dst, Gradient diff_weights);
}  // namespace winograd

/// The same with the batch innermost (S C N): for odd channel counts and many images.
namespace winograd_images {
std::string declines(const ConvGeometry&);
std::string declines_backward_weights(const ConvGeometry&);
void convolution(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu);
void backward_weights(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                      TensorId diff_dst, Gradient diff_weights);
}  // namespace winograd_images

/// Weight gradients of few input channels (S C N), with the operands as they are.
namespace image_dots {
std::string declines(const ConvGeometry&);
void backward_weights(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                      TensorId diff_dst, Gradient diff_weights);
}  // namespace image_dots

/// One input and one output channel per group (N S C).
namespace depthwise {
std::string declines(const ConvGeometry&);
void convolution(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                 TensorId weights, TensorId bias, TensorId dst, bool relu);
void backward_data(Program&, const std::string& name, const ConvGeometry&, TensorId diff_dst,
                   TensorId weights, TensorId diff_src);
void backward_weights(Program&, const std::string& name, const ConvGeometry&, TensorId src,
                      TensorId diff_dst, Gradient diff_weights);
}  // namespace depthwise

}  // namespace cafetiere
