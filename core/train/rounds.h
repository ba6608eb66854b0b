// SPDX-License-Identifier: Apache-2.0
// Rounds: the driver's side of a training whose replicas are called round by round.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/sync/outer_step.h"
#include "core/train/early_stopping.h"
#include "core/train/replica.h"

namespace cafetiere {

/// Holds what the replicas share between rounds, updates it from their results, and writes models
/// and states.
class Rounds {
 public:
  /// Ignores `options.shard` and `options.inputs`.
  static Result<std::unique_ptr<Rounds>> create(ReplicaOptions options);

  /// Copies weights by layer name; then, given a state, resumes from its iteration.
  Status restore(const StoredWeights& weights, const std::shared_ptr<StateSource>& state = nullptr);

  const caffe::SolverParameter& solver() const { return options_.solver.param; }
  HistoryRule rule() const { return rule_; }
  size_t kinds() const { return kinds_; }
  /// Floats per arena.
  size_t floats() const { return size_t(graph_.arena_size()); }
  /// Of everything random, including the partition of rows.
  uint64_t seed() const { return seed_of(options_); }
  /// The next iteration.
  int iter() const { return iter_; }
  /// Iterations of the next round; 0 at the end.
  int length() const;
  /// What a round starts from, laid out as shared_floats() says.
  std::span<const float> shared() const { return shared_; }

  /// Ends a round. `sums` are the replicas' results, summed in the shard tree over groups of
  /// consecutive shards (tree_sum_of). All groups have one size, a power of two; the last may be
  /// smaller. The bits do not depend on the size.
  Status end_round(std::span<const std::span<const float>> sums);

  /// Takes a test of the shared weights, for early stopping.
  Status test(double value);
  const std::optional<EarlyStopping>& stopping() const { return stopping_; }

  /// Weights as a caffemodel; once the last ones are tested, those of the best test, if the solver asks for
  /// early stopping.
  Result<std::string> model() const;
  /// Iteration and history as a solverstate; `replicas` is the history of each shard, an arena per
  /// kind, if each keeps its own.
  Result<std::string> state(std::span<const std::span<const float>> replicas) const;

 private:
  explicit Rounds(ReplicaOptions options) : options_(std::move(options)) {}
  Status build();

  ReplicaOptions options_;
  HistoryRule rule_ = HistoryRule::kKept;
  Graph graph_;
  size_t kinds_ = 0;
  int iter_ = 0;
  std::vector<float> shared_;
  std::optional<EarlyStopping> stopping_;
  std::optional<OuterStep> outer_;  // where the mode has one
};

/// The sum of arrays of equal length, in the tree over as many shards.
Result<std::vector<float>> tree_sum_of(std::span<const std::span<const float>> arrays);

}  // namespace cafetiere
