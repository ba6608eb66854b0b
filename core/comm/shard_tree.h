// SPDX-License-Identifier: Apache-2.0
// The shard tree: V gradients summed in one fixed order, independent of which ranks hold which
// shards, so that the sum is bitwise the same for any number of ranks.
//
// The tree over n shards splits at the largest power of two below n; a leaf is one shard. A rank
// adds its shards in order and keeps the few largest nodes inside its range. In reduce_scatter, the
// owner of a slice receives these nodes from all ranks and completes the tree.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/base/shard_range.h"
#include "core/base/status.h"
#include "core/base/thread_pool.h"
#include "core/comm/group.h"
#include "core/comm/wire.h"

namespace cafetiere {

/// True if both are nodes and are the two children of one node.
bool are_siblings(ShardRange left, ShardRange right, int shards);

/// The largest nodes that together cover `range`, in order.
std::vector<ShardRange> nodes_of(ShardRange range, int shards);

/// Offsets of `ranks` slices of about equal size, in multiples of kArenaBlock: from 0 to `floats`.
std::vector<size_t> even_slices(size_t floats, int ranks);

/// Sums the shards of a rank, using at most ceil(log2 V) + 1 arrays, which are allocated in the
/// first round and reused.
class TreeSum {
 public:
  /// A complete node, and its sum.
  struct Partial {
    ShardRange node;
    const float* data;
  };

  /// For arrays of `floats` values. `pool` may be null; otherwise it must outlive this object.
  TreeSum(ShardRange range, int shards, size_t floats, ThreadPool* pool);

  /// Adds the next shard's array. The array of the last shard must not change until reset(),
  /// because it may be used in place; the others may.
  Status add(std::span<const float> leaf);

  /// Clears the sums for the next round.
  void reset();

  ShardRange range() const { return range_; }
  int shards() const { return shards_; }
  size_t floats() const { return floats_; }
  ThreadPool* pool() const { return pool_; }
  bool complete() const { return next_ == range_.end; }

  /// The complete nodes in order; nodes_of(range()) once all shards are added.
  std::span<const Partial> partials() const { return partials_; }

  /// A buffer for `floats` values from peers; valid as long as this object.
  float* scratch(size_t floats);

 private:
  float* take_buffer();
  void give_back(const float* buffer);

  const ShardRange range_;
  const int shards_;
  const size_t floats_;
  ThreadPool* const pool_;
  int next_;
  std::vector<Partial> partials_;
  std::vector<std::unique_ptr<float[]>> buffers_;
  std::vector<float*> free_;
  std::unique_ptr<float[]> scratch_;
  size_t scratch_floats_ = 0;
};

/// An error unless `slices` divide `floats` values into one slice per rank.
Status check_slices(const Group* group, std::span<const size_t> slices, size_t floats);

/// An error unless the rank has added its shards and `out` holds its slice.
Status check_reduction(const Group* group, const TreeSum& sum, std::span<const size_t> slices,
                       std::span<const float> out);

/// The input and output of reduce_scatter(): `out` becomes slice `rank` of the sum over all shards.
/// `slices` holds the offsets of one slice per rank (even_slices). `out` may be part of the array
/// last given to add(), at this slice's own offset.
struct Reduction {
  TreeSum& sum;
  std::span<const size_t> slices;
  std::span<float> out;
};

/// Reports when sums that another thread computes are complete.
class ReadySource {
 public:
  virtual ~ReadySource() = default;
  /// True once the sum of reduction `i` is complete; called in order of `i`, and again whenever
  /// wake_fd() becomes readable. An error ends the exchange.
  virtual Result<bool> ready(size_t i) = 0;
  virtual int wake_fd() const = 0;
};

/// Completes the trees of several arrays in one exchange; ranks may divide the arrays into
/// different calls, but their order must be the same. With a `source`, each array is sent as soon
/// as it is ready, without waiting for the peers to process the previous one. A null group is a
/// single rank. With a 16-bit `wire`, the other ranks' nodes arrive rounded, and the result is
/// bitwise the same only for the same number of ranks.
Status reduce_scatter(Group* group, std::span<const Reduction> reductions,
                      Wire wire = Wire::kFloat32, ReadySource* source = nullptr);
inline Status reduce_scatter(Group* group, TreeSum& sum, std::span<const size_t> slices,
                             std::span<float> out, Wire wire = Wire::kFloat32) {
  const Reduction reduction{sum, slices, out};
  return reduce_scatter(group, {&reduction, 1}, wire);
}

/// An array of which each rank has its own slice.
struct AllGatherOp {
  std::span<float> arena;
  std::span<const size_t> slices;
};

/// Every rank sends its own slices and receives the others', for several arrays in one exchange.
/// With a 16-bit `wire`, its own slices are rounded too, so that all ranks hold the same values:
/// use it for gradients or deltas, not for weights, whose small updates would be lost to rounding.
Status all_gather_slices(Group* group, std::span<const AllGatherOp> gathers,
                         Wire wire = Wire::kFloat32);
inline Status all_gather_slices(Group* group, std::span<float> arena,
                                std::span<const size_t> slices, Wire wire = Wire::kFloat32) {
  const AllGatherOp gathering{arena, slices};
  return all_gather_slices(group, {&gathering, 1}, wire);
}

/// The sum over all shards on every rank, bitwise equal to reduce_scatter followed by
/// all_gather_slices; a small array takes one exchange instead of two. `out` may be the array last
/// passed to add().
Status all_reduce(Group* group, TreeSum& sum, std::span<float> out, Wire wire = Wire::kFloat32);

/// Gathers `k` doubles per shard in shard order: `mine` holds those of the rank's own shards, `all`
/// receives shards * k values.
Status gather_shard_values(Group* group, int shards, std::span<const double> mine, int k,
                           std::span<double> all);

}  // namespace cafetiere
