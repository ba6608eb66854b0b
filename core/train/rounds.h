// SPDX-License-Identifier: Apache-2.0
// Rounds: the driver's side of a training run whose replicas are called round by round.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/sync/outer_step.h"
#include "core/train/early_stopping.h"
#include "core/train/embedding_posterior.h"
#include "core/train/replica.h"

namespace cafetiere {

/// Holds the data shared by the replicas between rounds, updates it from their results, and writes
/// models and states.
class Rounds {
 public:
  /// Ignores `options.shard` and `options.inputs`.
  static Result<std::unique_ptr<Rounds>> create(ReplicaOptions options);

  /// Copies weights by layer name; then, if a state is given, resumes from its iteration.
  Status restore(const StoredWeights& weights, const std::shared_ptr<StateSource>& state = nullptr);

  const caffe::SolverParameter& solver() const { return options_.solver.param; }
  HistoryRule rule() const { return rule_; }
  size_t kinds() const { return kinds_; }
  /// Floats per arena.
  size_t floats() const { return size_t(graph_.arena_size()); }
  /// The random seed, which also determines the partition of rows.
  uint64_t seed() const { return seed_of(options_); }
  /// The next iteration.
  int iter() const { return iter_; }
  /// The number of iterations of the next round; 0 at the end.
  int length() const;
  /// The starting point of a round, laid out as described at shared_floats().
  std::span<const float> shared() const { return shared_; }

  /// Ends a round. `sums` are the replicas' results, summed in the shard tree over groups of
  /// consecutive shards (tree_sum_of). All groups have the same size, a power of two, except that
  /// the last may be smaller. The result does not depend on that size, bit for bit.
  Status end_round(std::span<const std::span<const float>> sums);

  /// Records a test of the shared weights, for early stopping.
  Status test(double value);
  const std::optional<EarlyStopping>& stopping() const { return stopping_; }

  /// Whether a posterior mean is left to be taken: after the last round, and its test if there is
  /// one.
  bool posterior_due() const { return length() == 0 && next_posterior_ < posteriors_.size(); }
  /// What Replica::sum_posterior() needs to know of it.
  Result<std::vector<float>> begin_posterior();
  /// Takes it. `sums`: the replicas' results, summed like those of a round.
  Status end_posterior(std::span<const std::span<const float>> sums);

  /// The weights as a caffemodel. With early stopping, once the last weights have been tested,
  /// those of the best test; after a posterior was begun, its own.
  Result<std::string> model() const;
  /// Iteration and history as a solverstate; `replicas` holds the history of each shard, one arena
  /// per kind, if each shard keeps its own.
  Result<std::string> state(std::span<const std::span<const float>> replicas) const;

 private:
  explicit Rounds(ReplicaOptions options) : options_(std::move(options)) {}
  Status build();
  std::span<const float> best_weights() const;

  ReplicaOptions options_;
  HistoryRule rule_ = HistoryRule::kKept;
  Graph graph_;
  std::vector<EmbeddingPosterior> posteriors_;
  size_t next_posterior_ = 0;
  std::vector<float> final_;  // the weights with posterior means; empty before the first
  size_t kinds_ = 0;
  int iter_ = 0;
  std::vector<float> shared_;
  std::optional<EarlyStopping> stopping_;
  std::optional<OuterStep> outer_;  // only in modes with an outer step
};

/// The sum of arrays of equal length, in the tree over that number of shards.
Result<std::vector<float>> tree_sum_of(std::span<const std::span<const float>> arrays);

}  // namespace cafetiere
