// SPDX-License-Identifier: Apache-2.0
#include "core/comm/shard_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include "core/base/arena_block.h"

namespace cafetiere {
namespace {

constexpr size_t kThreadBlock = 64 << 10;  // floats one thread takes at a time

int split_of(ShardRange node) {
  return node.begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(node.size() - 1)));
}

void collect(ShardRange node, ShardRange range, std::vector<ShardRange>* out) {
  if (node.end <= range.begin || node.begin >= range.end) return;
  if (node.begin >= range.begin && node.end <= range.end) {
    out->push_back(node);
    return;
  }
  const int split = split_of(node);
  collect({node.begin, split}, range, out);
  collect({split, node.end}, range, out);
}

/// Calls fn(offset, count) for blocks that cover `floats`.
template <class F>
void for_blocks(ThreadPool* pool, size_t floats, const F& fn) {
  const int blocks = static_cast<int>((floats + kThreadBlock - 1) / kThreadBlock);
  const auto run_block = [&](int b) {
    const size_t at = b * kThreadBlock;
    fn(at, std::min(kThreadBlock, floats - at));
  };
  if (pool) {
    pool->run(blocks, run_block);
  } else {
    for (int b = 0; b < blocks; ++b) run_block(b);
  }
}

}  // namespace

bool are_siblings(ShardRange left, ShardRange right, int shards) {
  if (left.end != right.begin) return false;
  ShardRange node{0, shards};
  while (node.size() > 1) {
    const int split = split_of(node);
    if (node.begin == left.begin && node.end == right.end) return split == left.end;
    if (right.end <= split) {
      node.end = split;
    } else if (left.begin >= split) {
      node.begin = split;
    } else {
      return false;
    }
  }
  return false;
}

std::vector<ShardRange> nodes_of(ShardRange range, int shards) {
  std::vector<ShardRange> nodes;
  if (range.size() > 0) collect({0, shards}, range, &nodes);
  return nodes;
}

std::vector<size_t> even_slices(size_t floats, int ranks) {
  const size_t blocks = (floats + kArenaBlock - 1) / kArenaBlock;
  std::vector<size_t> offsets;
  for (int r = 0; r <= ranks; ++r) {
    offsets.push_back(std::min(floats, blocks * r / ranks * kArenaBlock));
  }
  return offsets;
}

TreeSum::TreeSum(ShardRange range, int shards, size_t floats, ThreadPool* pool)
    : range_(range), shards_(shards), floats_(floats), pool_(pool), next_(range.begin) {}

Status TreeSum::add(std::span<const float> leaf) {
  if (complete() || leaf.size() != floats_) {
    return internal_error(fmt::format(
        "tree sum: shard {} of [{}, {}) with {} floats cannot be added; an array has {}", next_,
        range_.begin, range_.end, leaf.size(), floats_));
  }
  Partial sum{{next_, next_ + 1}, leaf.data()};
  ++next_;
  while (!partials_.empty() && are_siblings(partials_.back().node, sum.node, shards_)) {
    const Partial left = partials_.back();
    partials_.pop_back();
    float* into = const_cast<float*>(left.data);  // our own buffer: only the last leaf is not
    const float* from = sum.data;
    for_blocks(pool_, floats_, [&](size_t at, size_t count) {
      for (size_t i = at; i < at + count; ++i) into[i] += from[i];
    });
    if (sum.data != leaf.data()) give_back(sum.data);
    sum = {{left.node.begin, sum.node.end}, into};
  }
  if (sum.data == leaf.data() && !complete()) {
    float* copy = take_buffer();
    for_blocks(pool_, floats_, [&](size_t at, size_t count) {
      std::memcpy(copy + at, leaf.data() + at, count * sizeof(float));
    });
    sum.data = copy;
  }
  partials_.push_back(sum);
  return {};
}

void TreeSum::reset() {
  partials_.clear();
  free_.clear();
  for (const auto& buffer : buffers_) free_.push_back(buffer.get());
  next_ = range_.begin;
}

float* TreeSum::take_buffer() {
  if (free_.empty()) {
    buffers_.push_back(std::make_unique_for_overwrite<float[]>(floats_));
    return buffers_.back().get();
  }
  float* buffer = free_.back();
  free_.pop_back();
  return buffer;
}

void TreeSum::give_back(const float* buffer) { free_.push_back(const_cast<float*>(buffer)); }

float* TreeSum::scratch(size_t floats) {
  if (floats > scratch_floats_) {
    scratch_ = std::make_unique_for_overwrite<float[]>(floats);
    scratch_floats_ = floats;
  }
  return scratch_.get();
}

}  // namespace cafetiere
