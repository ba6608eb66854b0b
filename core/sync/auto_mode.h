// SPDX-License-Identifier: Apache-2.0
// AutoMode: measures what an exchange costs and picks a mode by it.
#pragma once

#include <chrono>

#include "core/sync/sync.h"

namespace cafetiere {

/// Begins as `allreduce`. After kTrialRounds iterations (kFirstLook where most of the time went into
/// exchanges) the ranks compare the time of an exchange with that of an iteration's mathematics
/// (medians): the slowest rank's mathematics, and the exchange as the last to arrive has it, who waits
/// for nobody. Where the exchange takes at most kCheapExchange of a step, the run stays with
/// `allreduce`, whose steps see the whole global batch; else it goes on with `diloco` and the
/// shortest period that brings the exchange down to kRareExchange. The choice is told, is the same on all
/// ranks and is kept in the checkpoint. What the settings say of the outer step holds.
class AutoMode : public Sync {
 public:
  static constexpr int kFirstLook = 3;
  static constexpr int kTrialRounds = 10;
  static constexpr double kCheapExchange = 0.1;
  /// Periods that bring the exchange further down cost more iterations than they save time
  /// (docs/modes.md).
  static constexpr double kRareExchange = 0.2;
  /// Outer steps over fewer iterations than SparkNet's ten take more of them in all.
  static constexpr int kShortestPeriod = 10;
  static constexpr int kLongestPeriod = 50;
  /// Where the settings say nothing: DiLoCo's 0.9 is for periods of hundreds of iterations.
  static constexpr float kOuterMomentum = 0.5F;

  AutoMode(const SyncContext& context, const caffe::SyncParameter& sync, UpdateMaker update);
  /// Makes the mode that it begins with.
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

  /// The period with which an exchange of `exchange` seconds takes at most kRareExchange of the time
  /// beside iterations of `compute` seconds, within the bounds above; 1, which stands for
  /// `allreduce`, where it takes at most kCheapExchange of each step.
  static int period_for(double compute, double exchange);

 private:
  using Clock = std::chrono::steady_clock;
  using Pick = const double& (*)(const double&, const double&);
  Status look();
  /// The median over the rounds of the ranks' seconds, of which `pick` takes one for each round.
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
  Clock::time_point begun_{};  // the round
  bool warm_ = false;
  std::vector<double> compute_, exchange_;  // seconds, one a trial round
};

}  // namespace cafetiere
