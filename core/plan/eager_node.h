// SPDX-License-Identifier: Apache-2.0
// EagerNode: one layer of an eager net, compiled on its own, between exposed blobs.
#pragma once

#include <memory>
#include <vector>

#include "core/base/thread_pool.h"
#include "core/device/device.h"
#include "core/device/host_memory.h"
#include "core/device/run_error.h"
#include "core/graph/external_layer.h"
#include "core/graph/graph.h"

namespace cafetiere {

/// The blobs that a layer reads and writes. An in-place layer has the same view as bottom and top.
struct NodeBlobs {
  std::vector<BlobView> bottoms, tops, params;

  bool operator==(const NodeBlobs&) const = default;
};

/// Runs the forward and backward steps of a layer any number of times in any order; no two buffers
/// share memory. Compiled on the first run, and again when a blob's shape or address has changed.
class EagerNode {
 public:
  Status forward(const Node& node, const Graph& graph, Device& device, ThreadPool& pool,
                 const NodeBlobs& blobs, const RunContext& context);
  /// Uses the random choices of the last forward().
  Status backward(const Node& node, const Graph& graph, Device& device, ThreadPool& pool,
                  const NodeBlobs& blobs);

 private:
  Status prepare(const Node& node, const Graph& graph, Device& device, const NodeBlobs& blobs);
  /// Allocates all buffers and creates the kernels.
  void bind(const class NodeProgram& program);

  bool compiled_ = false;
  NodeBlobs blobs_;
  std::vector<Kernel> forward_, backward_;
  Status backward_status_;  ///< why there are no backward steps; returned by backward()
  Memory memory_;
  /// Bound to the kernels, so its address must not change when the node is moved.
  std::unique_ptr<RunContext> context_ = std::make_unique<RunContext>();
  std::unique_ptr<RunError> error_ = std::make_unique<RunError>();
};

/// Zeroed memory whose pages are not committed until touched.
Memory zeroed_bytes(int64_t bytes);
std::shared_ptr<float> zeroed_memory(int64_t floats);

}  // namespace cafetiere
