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

/// Where a layer reads and writes. An in-place layer has the same view as bottom and top.
struct NodeBlobs {
  std::vector<BlobView> bottoms, tops, params;

  bool operator==(const NodeBlobs&) const = default;
};

/// Runs forward and backward steps of a layer any number of times in any order: every buffer has
/// memory of its own. Compiled when it is first run, and again when a blob has got another shape or
/// address.
class EagerNode {
 public:
  Status forward(const Node& node, const Graph& graph, Device& device, ThreadPool& pool,
                 const NodeBlobs& blobs, const RunContext& context);
  /// Reads the random choices of the last forward().
  Status backward(const Node& node, const Graph& graph, Device& device, ThreadPool& pool,
                  const NodeBlobs& blobs);

 private:
  Status prepare(const Node& node, const Graph& graph, Device& device, const NodeBlobs& blobs);
  /// Allocates every buffer and creates the kernels.
  void bind(const class NodeProgram& program);

  bool compiled_ = false;
  NodeBlobs blobs_;
  std::vector<Kernel> forward_, backward_;
  Status backward_status_;  ///< why the layer has no backward steps; backward reports it
  Memory memory_;
  /// What the kernels were bound to; it does not move when the node does.
  std::unique_ptr<RunContext> context_ = std::make_unique<RunContext>();
  std::unique_ptr<RunError> error_ = std::make_unique<RunError>();
};

/// Zeros that cost nothing until they are touched.
Memory zeroed_bytes(int64_t bytes);
std::shared_ptr<float> zeroed_memory(int64_t floats);

}  // namespace cafetiere
