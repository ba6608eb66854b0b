// SPDX-License-Identifier: Apache-2.0
// Hierarchical: AllReduce within a host at each step, an average across hosts every `period` ones.
#pragma once

#include <optional>

#include "core/comm/sub_group.h"
#include "core/sync/allreduce.h"

namespace cafetiere {

/// AllReduce within a team of neighbouring ranks, the mean of weights across the teams. The teams'
/// first ranks exchange; a team's weight is its number of ranks. The same bits for the same teams.
class Hierarchical : public SynchronousMode {
 public:
  /// Teams of `team_size` ranks, or, if that is 0, of the neighbouring ranks of one host. An error
  /// where the shards do not divide evenly among the ranks.
  static Result<std::unique_ptr<Sync>> make(const SyncContext& context, ArenaUpdate update,
                                            int period, int team_size);

  ShardRange shards() const override;
  ShardRange step_group(int) const override { return team_shards_; }
  int round_length(int iter) const override { return steps_->round_length(iter); }
  void begin_shard(int shard, std::span<float> weights) override {
    steps_->begin_shard(shard - team_shards_.begin, weights);
  }
  void final_from(std::span<float> gradient, size_t from) override {
    steps_->final_from(gradient, from);
  }
  Status gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                  std::span<float> weights) override {
    return steps_->gradient(step, loss, gradient, weights);
  }
  Status end_shard(int shard, std::span<float> weights) override {
    return steps_->end_shard(shard - team_shards_.begin, weights);
  }
  Status end_round(const UpdateStep& step, std::span<float> gradient,
                   std::span<float> weights) override;
  bool replicas_equal() const override { return replicas_equal_; }
  Status consolidate(bool end, std::span<float> weights) override;

  const Clipping& last_clipping() const override { return steps_->last_clipping(); }
  /// Each team has a history of its own; that of the first is the common one, too.
  Status show_state(const StateUse& use) override;
  std::unique_ptr<ModeState> own_state() override { return steps_->own_state(); }
  Status restore(ModeState& state) override;

 private:
  /// `bounds`: the first rank of each team, then the number of ranks.
  Hierarchical(const SyncContext& context, std::vector<int> bounds, int period, ArenaUpdate update);
  Status average(std::span<float> weights);

  size_t teams() const { return bounds_.size() - 1; }

  const SyncContext context_;
  const std::vector<int> bounds_;
  const size_t mine_;  // this rank's team
  const int period_;
  const float share_;  // the team's share of the ranks
  bool replicas_equal_ = true;
  ShardRange team_shards_;
  std::optional<SubGroup> team_, leaders_;
  std::unique_ptr<AllReduce> steps_;
  std::optional<TreeSum> sum_;  // on a team's first rank
};

}  // namespace cafetiere
