// SPDX-License-Identifier: Apache-2.0
#include "core/comm/tree_finish.h"

#include <algorithm>
#include <cstring>

#include "core/comm/shard_tree.h"

namespace cafetiere {
namespace {

constexpr size_t kTile = 1024;  // floats combined at a time: all operands stay in cache
constexpr int kMaxDepth = 32;   // of a tree over int shards

}  // namespace

TreeFinish::TreeFinish(std::span<const ShardRange> nodes, int shards) {
  std::vector<ShardRange> stack;
  for (size_t i = 0; i < nodes.size(); ++i) {
    stack.push_back(nodes[i]);
    steps_.push_back({Step::Kind::kPush, static_cast<int>(i)});
    while (stack.size() > 1 &&
           are_siblings(stack[stack.size() - 2], stack[stack.size() - 1], shards)) {
      const int end = stack.back().end;
      stack.pop_back();
      stack.back().end = end;
      steps_.push_back({Step::Kind::kAdd, 0});
    }
  }
}

void TreeFinish::run(std::span<const NodeValues> sources, float* out, size_t floats,
                     ThreadPool* pool) const {
  const int tiles = static_cast<int>((floats + kTile - 1) / kTile);
  const auto tile = [&](int t) {
    const size_t at = t * kTile;
    run_tile(sources, at, std::min(kTile, floats - at), out);
  };
  if (pool) {
    pool->run(tiles, tile);
  } else {
    for (int t = 0; t < tiles; ++t) tile(t);
  }
}

void TreeFinish::run_tile(std::span<const NodeValues> sources, size_t at, size_t count,
                          float* out) const {
  float sums[kMaxDepth][kTile];
  const float* stack[kMaxDepth];
  int depth = 0;
  for (size_t s = 0; s < steps_.size(); ++s) {
    if (steps_[s].kind == Step::Kind::kPush) {
      const NodeValues& node = sources[steps_[s].source];
      if (node.wire == Wire::kFloat32) {
        stack[depth] = static_cast<const float*>(node.data) + at;
      } else {
        widen(node.wire, static_cast<const uint16_t*>(node.data) + at, count, sums[depth]);
        stack[depth] = sums[depth];
      }
      ++depth;
      continue;
    }
    const float* left = stack[depth - 2];
    const float* right = stack[depth - 1];
    --depth;
    float* sum = s + 1 == steps_.size() ? out + at : sums[depth - 1];
    for (size_t i = 0; i < count; ++i) sum[i] = left[i] + right[i];
    stack[depth - 1] = sum;
  }
  if (stack[0] != out + at) std::memcpy(out + at, stack[0], count * sizeof(float));
}

}  // namespace cafetiere
