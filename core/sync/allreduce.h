// SPDX-License-Identifier: Apache-2.0
// AllReduce: every step, the gradients of all shards are summed in one fixed tree and each rank
// updates the slices of the parameters that it owns (CaffeOnSpark's method, kept synchronous).
#pragma once

#include "core/sync/gradient_exchange.h"
#include "core/sync/synchronous_mode.h"

namespace cafetiere {

/// Synchronous training. After each step the weights have the same bytes on every rank and, with
/// the default Exchange, for any number of ranks. Each rank keeps the solver's history of its own
/// slices only.
class AllReduce : public SynchronousMode {
 public:
  AllReduce(const SyncContext& context, ArenaUpdate update, Exchange exchange = {});

  ShardRange shards() const override { return exchange_.shards(); }
  ShardRange step_group(int) const override { return {0, context_.shards}; }
  int round_length(int) const override { return 1; }
  void begin_shard(int, std::span<float>) override {}
  void final_from(std::span<float> gradient, size_t from) override {
    exchange_.final_from(gradient, from);
  }
  Status gradient(const UpdateStep&, double, std::span<float> gradient, std::span<float>) override;
  Status end_shard(int, std::span<float>) override { return {}; }
  Status end_round(const UpdateStep& step, std::span<float> gradient,
                   std::span<float> weights) override;
  const Clipping& last_clipping() const override { return clipping_; }

  Status show_state(const StateUse& use) override;
  std::unique_ptr<ModeState> own_state() override { return nullptr; }
  Status restore(ModeState& state) override { return restore(state, {StateArray::kHistory}); }

  /// Where `ranks` ranks from `first` on keep the history of each kind; `here` if they are this
  /// mode's group.
  std::vector<StateParts> placed(int first, int ranks, bool here) const;
  /// Restores the history from `array`, whose index this sets.
  Status restore(ModeState& state, StateArray array);

 private:
  struct Slice {
    size_t begin, end;
    HistoryArenas history;
  };
  static ArenaSlice arena_slice(Slice& slice, std::span<float> gradient, std::span<float> weights,
                                std::vector<std::span<float>>& history);
  Status clip(std::span<const float> gradient);
  Status update(const UpdateStep& step, std::span<float> gradient, std::span<float> weights);

  const SyncContext context_;
  const bool rounds_;  // whether the wire rounds numbers
  ArenaUpdate update_;
  GradientExchange exchange_;
  std::vector<Slice> slices_;
  std::vector<float> before_;  // this rank's slices before their update; used with rounds_
  int added_ = 0;              // shards of this round
  Clipping clipping_;
};

}  // namespace cafetiere
