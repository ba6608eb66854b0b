// SPDX-License-Identifier: Apache-2.0
// Replicas: the shards of one rank, each trained on its own between two exchanges.
#pragma once

#include "core/sync/sync.h"

namespace cafetiere {

/// What happens to the replicas' history when their weights are averaged.
enum class HistoryRule {
  kKept,      ///< each keeps its own, as SparkNet's workers do
  kAveraged,  ///< all take the mean
  kReset      ///< all start from zero
};

/// The rule that `sync.history()` names.
HistoryRule history_rule(const caffe::SyncParameter& sync);

/// Trains one shard after another, each with its own history; the caller swaps their weights.
class Replicas : public ShardUpdate {
 public:
  /// The shards of this rank.
  Replicas(const SyncContext& context, ArenaUpdate update);
  /// These shards.
  Replicas(const SyncContext& context, ShardRange shards, ArenaUpdate update);

  ShardRange shards() const override { return shards_; }
  ShardRange step_group(int shard) const override { return {shard, shard + 1}; }
  /// Makes `shard` the current one; its weights are up to the caller.
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

  /// Clips and applies one iteration's gradient. Rules that correct the bias of a history that began
  /// with zeros get the number of iterations since.
  void step(UpdateStep step, std::span<float> gradient, std::span<float> weights);
  const Clipping& last_clipping() const { return clipping_; }

  /// History of the i-th of shards(), one arena per kind.
  HistoryArenas& history(int i) { return history_[size_t(i)]; }
  size_t kinds() const { return size_t(update_.history_per_param()); }
  /// Floats at the front of the arena that have gradients; statistics follow them.
  size_t learned() const { return size_t(update_.learned()); }

  /// Where the history of each shard is stored.
  std::vector<std::vector<StateParts>> placed() const;
  /// Restores the own history of each shard if the state has as many; otherwise the common one.
  Status restore(ModeState& state);
  /// The history of the first shard, and since when it is kept. Nothing is left here.
  std::unique_ptr<ModeState> take_history(std::string mode = "");
  /// All shards start from zero.
  void reset_history();
  /// Tells how often the caller resets the history, at multiples of `iterations`; by default never.
  void reset_every(int iterations) { reset_every_ = iterations; }

 private:
  const SyncContext context_;
  const ArenaUpdate update_;
  const ShardRange shards_;
  std::vector<HistoryArenas> history_;  // of each shard
  int began_ = 0;                       // the iteration that began with a history of zeros
  int reset_every_ = 0;                 // 0: never
  size_t at_work_ = 0;
  Clipping clipping_;
};

}  // namespace cafetiere
