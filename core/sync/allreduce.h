// AllReduce: every step, the gradients of all shards are added in one fixed tree and each rank
// updates the slice of the parameters that it owns.
#pragma once

#include <span>
#include <vector>

#include "core/comm/group.h"
#include "core/comm/shard_tree.h"
#include "core/solver/arena_update.h"

namespace cafetiere {

/// What clipping did in a step: the gradients' norm and what they were multiplied by.
struct Clipping {
  float norm = 0, factor = 1;
};

/// Synchronous training over flat arenas. Weights are the same bytes on every rank after each step,
/// and for any number of ranks; the solver's history is kept by slice, on its owner alone.
class AllReduce {
 public:
  /// `group` may be null (one rank). `floats`: the arena's size. `pool` and `group` must outlive it.
  AllReduce(Group* group, int shards, int64_t floats, ArenaUpdate update, ThreadPool* pool);

  /// The shards whose gradients this rank computes.
  ShardRange shards() const { return sum_.range(); }
  /// Adds the gradient of the next of shards(). Only the last one must stay as it is until step().
  Status add(std::span<const float> gradient) { return sum_.add(gradient); }

  /// Sums over all shards, clips (`clip` < 0: not), updates `weights` everywhere. `gradient`: the
  /// array given last to add(), used up.
  Status step(UpdateStep step, float clip, std::span<float> gradient, std::span<float> weights);

  /// Of the last step; the factor is 1 where nothing was clipped.
  const Clipping& last_clipping() const { return clipping_; }

  /// All ranks' history, one arena for each kind, on every rank.
  Result<std::vector<std::vector<float>>> gather_history();
  /// Takes this rank's slice of each.
  void set_history(const std::vector<std::vector<float>>& arenas);

 private:
  Status clip(std::span<const float> gradient, float limit);

  Group* group_;
  ThreadPool* pool_;
  ArenaUpdate update_;
  TreeSum sum_;
  std::vector<size_t> slices_;
  size_t begin_, end_;  // this rank's slice
  Clipping clipping_;
  std::vector<std::vector<float>> history_;
};

}  // namespace cafetiere
