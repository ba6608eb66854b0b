// SPDX-License-Identifier: Apache-2.0
// TreeFinish: the final additions of the shard tree, over the nodes of all ranks.
#pragma once

#include <span>
#include <vector>

#include "core/base/shard_range.h"
#include "core/base/thread_pool.h"
#include "core/comm/wire.h"

namespace cafetiere {

/// The values of a node, local or received.
struct NodeValues {
  const void* data;
  Wire wire = Wire::kFloat32;
};

/// Combines nodes into the tree's root, with the same additions for every element.
class TreeFinish {
 public:
  /// `nodes` cover all `shards`, in order.
  TreeFinish(std::span<const ShardRange> nodes, int shards);

  /// Sums one array of `floats` values per node; `out` may be one of them.
  void run(std::span<const NodeValues> sources, float* out, size_t floats, ThreadPool* pool) const;

 private:
  /// One instruction of a stack machine: adding pops two operands and pushes their sum.
  struct Step {
    enum class Kind { kPush, kAdd } kind;
    int source;  // kPush: index of the node
  };

  void run_tile(std::span<const NodeValues> sources, size_t at, size_t count, float* out) const;

  std::vector<Step> steps_;
};

}  // namespace cafetiere
