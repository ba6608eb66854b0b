// SPDX-License-Identifier: Apache-2.0
// AutoMode: measures the cost of an exchange and chooses a mode by it.
#pragma once

#include <chrono>

#include "core/sync/sync.h"

namespace cafetiere {

/// Starts as `allreduce`. After kTrialRounds iterations (kFirstLook where exchanges took most of
/// the time) the ranks compare the median times of an exchange and of an iteration's computation:
/// the computation of the slowest rank, and the exchange of the last rank to arrive, which waits
/// for no other. Where an exchange takes at most kCheapExchange of a step, the run keeps
/// `allreduce`, whose steps see the whole global batch; otherwise it switches to `diloco` with the
/// shortest period that reduces the exchange's share to kRareExchange. The choice is logged, is the
/// same on all ranks and is stored in the checkpoint. The settings of the outer step apply.
class AutoMode : public Sync {
 public:
  static constexpr int kFirstLook = 3;
  static constexpr int kTrialRounds = 10;
  static constexpr double kCheapExchange = 0.1;
  /// Longer periods, with a smaller share, cost more iterations than they save time
  /// (docs/modes.md).
  static constexpr double kRareExchange = 0.2;
  /// With periods shorter than SparkNet's ten a training needs more iterations in all.
  static constexpr int kShortestPeriod = 10;
  static constexpr int kLongestPeriod = 50;
  /// Used where the settings give none: DiLoCo's 0.9 is for periods of hundreds of iterations.
  static constexpr float kOuterMomentum = 0.5F;

  AutoMode(const SyncContext& context, const caffe::SyncParameter& sync, UpdateMaker update);
  /// Creates the mode that it starts with.
  Status start();

  ShardRange shards() const override { return mode_->shards(); }
  ShardRange step_group(int shard) const override { return mode_->step_group(shard); }
  int round_length(int iter) const override { return mode_->round_length(iter); }
  void begin_shard(int shard, std::span<float> weights) override {
    if (shard == shards().begin) begun_ = Clock::now();
    mode_->begin_shard(shard, weights);
  }
  void final_from(std::span<float> gradient, size_t from) override {
    if (chosen_) mode_->final_from(gradient, from);  // a trial measures the whole exchange
  }
  Status gradient(const UpdateStep& step, double loss, std::span<float> gradient,
                  std::span<float> weights) override {
    return mode_->gradient(step, loss, gradient, weights);
  }
  Status end_shard(int shard, std::span<float> weights) override {
    return mode_->end_shard(shard, weights);
  }
  Status end_round(const UpdateStep& step, std::span<float> gradient,
                   std::span<float> weights) override;
  bool is_synchronous() const override { return mode_->is_synchronous(); }
  bool replicas_equal() const override { return mode_->replicas_equal(); }
  bool is_leader() const override { return mode_->is_leader(); }
  Status consolidate(bool end, std::span<float> weights) override {
    return mode_->consolidate(end, weights);
  }
  Result<std::vector<std::vector<std::byte>>> gather_at_end(
      std::span<const std::byte> mine) override {
    return mode_->gather_at_end(mine);
  }
  const Clipping& last_clipping() const override { return mode_->last_clipping(); }
  Status show_state(const StateUse& use) override;
  std::unique_ptr<ModeState> own_state() override { return mode_->own_state(); }
  Status restore(ModeState& state) override;

  /// The shortest period, within the bounds above, at which an exchange of `exchange` seconds takes
  /// at most kRareExchange of the time, given iterations of `compute` seconds; 1, which stands for
  /// `allreduce`, where it takes at most kCheapExchange of each step.
  static int period_for(double compute, double exchange);

 private:
  using Clock = std::chrono::steady_clock;
  using Pick = const double& (*)(const double&, const double&);
  double exchange_seconds() const;
  Status look();
  /// The median over the rounds; `pick` reduces the ranks' seconds of each round to one.
  Result<double> over_ranks(const std::vector<double>& mine, Pick pick) const;
  Status choose(double compute, double exchange);
  Status adopt(int period);
  Result<HistoryArenas> common_history();

  const SyncContext context_;
  caffe::SyncParameter sync_;
  UpdateMaker update_;
  std::unique_ptr<Sync> mode_;
  bool chosen_ = false;
  int period_ = 1;
  Clock::time_point begun_{};  // when the round began
  bool warm_ = false;
  std::vector<double> compute_, exchange_;  // seconds of each trial round
};

}  // namespace cafetiere
