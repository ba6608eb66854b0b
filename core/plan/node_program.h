// SPDX-License-Identifier: Apache-2.0
// NodeProgram: the steps of a single layer between exposed blobs.
#pragma once

#include <map>
#include <optional>

#include "core/device/device.h"
#include "core/graph/graph.h"
#include "core/plan/eager_node.h"
#include "core/plan/lower_node.h"
#include "core/plan/memory.h"

namespace cafetiere {

/// Emits the steps of a layer, with copies from and to its blobs. All arguments must outlive it.
class NodeProgram {
 public:
  NodeProgram(const Node& node, const Graph& graph, Device& device, const NodeBlobs& blobs)
      : node_(node), graph_(graph), device_(device), blobs_(blobs) {}
  NodeProgram(const NodeProgram&) = delete;  // it points into itself
  NodeProgram& operator=(const NodeProgram&) = delete;

  /// Adds the steps of the forward pass; call once.
  Status forward();
  /// Adds the steps of the backward pass, which may run any number of times after a forward pass. A
  /// layer without gradients has none.
  Status backward();

  const Program& program() const { return program_; }
  /// The number of steps of the forward pass.
  size_t forward_steps() const { return forward_steps_; }
  /// Places all buffers; none share memory, so that the passes can run in any order.
  MemoryPlan places() const;
  /// The addresses of all buffers when the placed ones are in `memory`.
  std::vector<void*> addresses(std::byte* memory) const;

 private:
  /// Whether a bottom has no values, as where a Filter lets no row through. The layer then computes
  /// nothing: tops that have values all the same, such as a loss, and gradients are 0.
  bool lacks_rows() const;
  void clear(const char* what, const Shape& shape, float* memory);
  /// Whether an in-place layer overwrites this blob.
  bool overwritten_later(int blob) const;
  /// A tensor in the memory of a blob or a parameter.
  TensorId external(const char* what, const Shape& shape, float* memory);
  void put(TensorId id, float* memory);
  /// The tensor that the layer reads: the blob itself, or a copy if the layer will overwrite the
  /// blob.
  TensorId input(const char* what, const BlobView& blob, float* memory, bool overwritten);
  /// Stores the layer's result in its blob.
  void output(TensorId made, const Shape& shape, float* memory);
  /// Statistics have no gradient here: an observation updates them at once, as in Caffe.
  ParamTensors param(size_t i);

  const Node& node_;
  const Graph& graph_;
  Device& device_;
  const NodeBlobs& blobs_;
  Program program_;
  std::map<BufferId, float*> externals_;
  std::optional<LoweringContext> layer_;
  size_t forward_steps_ = 0;
};

}  // namespace cafetiere
