// SPDX-License-Identifier: Apache-2.0
// ImmediateUpdate: mode allreduce without other ranks. The plan updates each parameter as soon as
// backward no longer needs it, so that there is no arena of gradients.
#pragma once

#include "core/device/program.h"
#include "core/sync/synchronous_mode.h"

namespace cafetiere {

/// Bitwise the same as AllReduce with one shard on one rank.
class ImmediateUpdate final : public SynchronousMode, public ParamUpdate {
 public:
  /// Whether a solver can update its parameters one by one, each with the gradient of a single
  /// pass: no clipping by the global norm, no sum over passes, no rounding for transfer, no
  /// compression.
  static bool suits(const caffe::SolverParameter& solver, const UpdateRule& rule);

  /// `floats`: total size of the parameters. `group` may be null.
  ImmediateUpdate(Group* group, ArenaUpdate update, int64_t floats);

  /// Passes of the plan from now on belong to this iteration; `weights` is the whole arena.
  void begin(const UpdateStep& step, std::span<float> weights) {
    step_ = step;
    weights_ = weights;
  }
  void apply(size_t param, int64_t begin, std::span<const float> gradient) override;

  ShardRange shards() const override { return {0, 1}; }
  ShardRange step_group(int) const override { return {0, 1}; }
  int round_length(int) const override { return 1; }
  void begin_shard(int, std::span<float>) override {}
  void final_from(std::span<float>, size_t) override {}
  Status gradient(const UpdateStep&, double, std::span<float>, std::span<float>) override {
    return {};
  }
  Status end_shard(int, std::span<float>) override { return {}; }
  Status end_round(const UpdateStep&, std::span<float>, std::span<float>) override { return {}; }
  const Clipping& last_clipping() const override { return clipping_; }
  Status show_state(const StateUse& use) override;
  std::unique_ptr<ModeState> own_state() override { return nullptr; }
  Status restore(ModeState& state) override;

 private:
  const ArenaUpdate update_;
  HistoryArenas history_;
  UpdateStep step_;
  std::span<float> weights_;
  const Clipping clipping_;
};

}  // namespace cafetiere
