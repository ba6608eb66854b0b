// SPDX-License-Identifier: Apache-2.0
// Replicas: the shards of one rank as nets of their own, which train apart between two exchanges.
#pragma once

#include "core/sync/sync.h"

namespace cafetiere {

/// What becomes of the replicas' history when their weights are averaged.
enum class HistoryRule {
  kKept,      ///< each goes on with its own, as SparkNet's workers do
  kAveraged,  ///< all go on with the mean
  kReset      ///< all begin anew
};

/// The rule that `sync.history()` names.
HistoryRule history_rule(const caffe::SyncParameter& sync);

/// Trains one shard after another, each with history of its own, on weights that are at work one
/// after another, too.
class Replicas : public ShardUpdate {
 public:
  /// The shards of this rank.
  Replicas(const SyncContext& context, ArenaUpdate update);
  /// These shards.
  Replicas(const SyncContext& context, ShardRange shards, ArenaUpdate update);

  ShardRange shards() const override { return shards_; }
  ShardRange step_group(int shard) const override { return {shard, shard + 1}; }
  /// `shard` is at work from now on; the weights are the caller's affair.
  void begin_shard(int shard, std::span<float>) override {
    at_work_ = size_t(shard - shards_.begin);
  }
  void final_from(std::span<float>, size_t) override {}
  Status gradient(const UpdateStep& step, double, std::span<float> gradient,
                  std::span<float> weights) override {
    this->step(step, gradient, weights);
    return {};
  }
  Status end_shard(int, std::span<float>) override { return {}; }

  /// Clips and applies one iteration's gradient.
  void step(UpdateStep step, std::span<float> gradient, std::span<float> weights);
  const Clipping& last_clipping() const { return clipping_; }

  /// History of the i-th of shards(), one arena a kind.
  HistoryArenas& history(int i) { return history_[size_t(i)]; }
  size_t kinds() const { return size_t(update_.history_per_param()); }
  /// Floats at the front of the arena that have gradients; statistics lie behind them.
  size_t learned() const { return size_t(update_.learned()); }

  /// Where the history of each shard lies.
  std::vector<std::vector<StateParts>> placed() const;
  /// Takes what each of these shards had, if they are to differ (`apart`) and the state is of as many
  /// shards; else what all had.
  Status restore(ModeState& state, bool apart = true);

 private:
  const SyncContext context_;
  const ArenaUpdate update_;
  const ShardRange shards_;
  std::vector<HistoryArenas> history_;  // of each shard
  size_t at_work_ = 0;
  Clipping clipping_;
};

}  // namespace cafetiere
