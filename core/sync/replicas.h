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

/// Trains one shard after another from the same weights. Each has history of its own; of weights
/// there is one copy beside the one at work, however many shards a rank has.
class Replicas {
 public:
  Replicas(const SyncContext& context, ArenaUpdate update);

  ShardRange shards() const { return shards_; }

  /// Puts the weights into `weights` that the round began with; `shard` is at work from now on.
  void begin_shard(int shard, std::span<float> weights);
  /// Clips and applies one iteration's gradient.
  void step(UpdateStep step, std::span<float> gradient, std::span<float> weights);
  const Clipping& last_clipping() const { return clipping_; }

  /// Weights at the start of the round; of a rank with shards.
  std::span<const float> start() const { return start_; }

  /// History of the i-th of shards(), one arena a kind.
  HistoryArenas& history(int i) { return history_[size_t(i)]; }
  size_t kinds() const { return size_t(update_.history_per_param()); }
  /// Floats at the front of the arena that have gradients; statistics lie behind them.
  size_t learned() const { return size_t(update_.learned()); }

  /// Collects the history of all shards on rank 0; every rank calls it.
  Result<std::vector<HistoryArenas>> gather();
  /// Takes this rank's part of what all had, or, where `all` is not of as many shards, `common`.
  void restore(const std::vector<HistoryArenas>& all, const HistoryArenas& common);

 private:
  const SyncContext context_;
  const ArenaUpdate update_;
  const ShardRange shards_;
  std::vector<HistoryArenas> history_;  // of each shard
  std::vector<float> start_;
  size_t at_work_ = 0;
  Clipping clipping_;
};

}  // namespace cafetiere
