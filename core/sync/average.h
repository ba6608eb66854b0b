// SPDX-License-Identifier: Apache-2.0
// Average: every `period` iterations the replicas' weights are averaged (SparkNet's method).
#pragma once

#include "core/sync/replicas.h"
#include "core/sync/shard_mean.h"

namespace cafetiere {

/// Each shard is a replica that does `period` iterations on its own; then all take the mean of the
/// weights. Weights are the same bytes for any number of ranks.
class Average : public Sync {
 public:
  Average(const SyncContext& context, ArenaUpdate update, int period, HistoryRule history,
          Exchange exchange = {});

  ShardRange shards() const override { return replicas_.shards(); }
  ShardRange partners(int shard) const override { return {shard, shard + 1}; }
  int round_length(int iter) const override { return period_ - iter % period_; }

  void begin_shard(int shard, std::span<float> weights) override {
    replicas_.begin_shard(shard, weights);
  }
  Status gradient(const UpdateStep& step, double, std::span<float> gradient,
                  std::span<float> weights) override {
    replicas_.step(step, gradient, weights);
    return {};
  }
  Status end_shard(int, std::span<float> weights) override;
  Status end_round(const UpdateStep& step, std::span<float>, std::span<float> weights) override;

  const Clipping& last_clipping() const override { return replicas_.last_clipping(); }
  Result<SyncState> state() override;
  SyncState own_state() override { return {.history = replicas_.history(0)}; }
  Status restore(const SyncState& state) override;

 protected:
  /// What becomes of the rank's slice of the mean, `mean`, before all ranks take it. `start`: what
  /// the slice was when the round began.
  virtual void outer_step(std::span<const float> /*start*/, std::span<float> /*mean*/) {}

  const ShardMean& mean() const { return mean_; }
  size_t learned() const { return replicas_.learned(); }

 private:
  Status end_history();

  Group* const group_;
  const int period_;
  const HistoryRule rule_;
  const bool rounds_;
  Replicas replicas_;
  ShardMean mean_;
};

}  // namespace cafetiere
