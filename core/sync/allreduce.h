// AllReduce: every step, the gradients of all shards are added in one fixed tree and each rank
// updates the slice of the parameters that it owns (CaffeOnSpark's method, kept synchronous).
#pragma once

#include "core/comm/shard_tree.h"
#include "core/sync/sync.h"

namespace cafetiere {

/// Synchronous training. Weights are the same bytes on every rank after each step, and for any
/// number of ranks; the solver's history is kept by slice, on its owner alone.
class AllReduce : public Sync {
 public:
  AllReduce(const SyncContext& context, ArenaUpdate update);

  ShardRange shards() const override { return sum_.range(); }
  ShardRange partners(int) const override { return {0, sum_.shards()}; }
  Status gradient(const UpdateStep&, double, std::span<float> gradient, std::span<float>) override {
    return sum_.add(gradient);
  }
  Status end_round(const UpdateStep& step, std::span<float> gradient,
                   std::span<float> weights) override;
  const Clipping& last_clipping() const override { return clipping_; }

  Result<SyncState> state() override;
  Status restore(const SyncState& state) override;

 private:
  Status clip(std::span<const float> gradient);

  const SyncContext context_;
  ArenaUpdate update_;
  TreeSum sum_;
  std::vector<size_t> slices_;
  size_t begin_, end_;  // this rank's slice
  Clipping clipping_;
  HistoryArenas history_;  // of the slice
};

}  // namespace cafetiere
