// SPDX-License-Identifier: Apache-2.0
// Average: every `period` iterations the replicas' weights are averaged (SparkNet's method); in
// DiLoCo an outer step follows.
#pragma once

#include "core/sync/outer_step.h"
#include "core/sync/replicas.h"
#include "core/sync/shard_mean.h"
#include "core/sync/synchronous_mode.h"

namespace cafetiere {

/// Each shard is a replica that trains `period` iterations on its own, with its own history
/// (HistoryRule); then all take the mean of the weights, or what the mode's OuterStep makes of it.
/// Beside the weights being trained a rank keeps one copy, however many shards it has. The weights
/// have the same bytes for any number of ranks.
class Average : public SynchronousMode {
 public:
  Average(const SyncContext& context, ArenaUpdate update, const caffe::SyncParameter& sync,
          Exchange exchange);

  ShardRange shards() const override { return replicas_.shards(); }
  ShardRange step_group(int shard) const override { return replicas_.step_group(shard); }
  int round_length(int iter) const override { return period_ - iter % period_; }

  void begin_shard(int shard, std::span<float> weights) override;
  void final_from(std::span<float>, size_t) override {}
  Status gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                  std::span<float> weights) override {
    return replicas_.gradient(step, loss, gradient, weights);
  }
  Status end_shard(int, std::span<float> weights) override;
  Status end_round(const UpdateStep& step, std::span<float>, std::span<float> weights) override;

  const Clipping& last_clipping() const override { return replicas_.last_clipping(); }
  Status show_state(const StateUse& use) override;
  std::unique_ptr<ModeState> own_state() override;
  Status restore(ModeState& state) override;

 private:
  Status end_history();

  const Logger log_;
  const std::string mode_;
  const int period_;
  const HistoryRule rule_;
  const Exchange exchange_;
  const bool narrow_;  // 16 bits per number on the wire
  Replicas replicas_;
  ShardMean mean_;
  std::optional<OuterStep> outer_;  // of this rank's slice
  std::vector<float> start_;        // weights when the round began
};

}  // namespace cafetiere
