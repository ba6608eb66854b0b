// SPDX-License-Identifier: Apache-2.0
// TreeFinish: the last additions of the shard tree, over the nodes that all ranks bring.
#pragma once

#include <span>
#include <vector>

#include "core/base/shard_range.h"
#include "core/base/thread_pool.h"
#include "core/comm/wire.h"

namespace cafetiere {

/// A node's numbers, as they lie here or as they came.
struct NodeValues {
  const void* data;
  Wire wire = Wire::kFloat32;
};

/// Combines nodes to the tree's root, the same additions for every element.
class TreeFinish {
 public:
  /// `nodes` cover all `shards`, in order.
  TreeFinish(std::span<const ShardRange> nodes, int shards);

  /// Adds one array of `floats` values for each node; `out` may be one of them.
  void run(std::span<const NodeValues> sources, float* out, size_t floats, ThreadPool* pool) const;

 private:
  /// One addition of the tree. Operands and result are named by their place on a stack: adding pops
  /// two places and pushes one.
  struct Step {
    enum class Kind { kPush, kAdd } kind;
    int source;  // kPush: which node
  };

  void run_tile(std::span<const NodeValues> sources, size_t at, size_t count, float* out) const;

  std::vector<Step> steps_;
};

}  // namespace cafetiere
