// SPDX-License-Identifier: Apache-2.0
// Rounds: the driver's end of a training whose replicas are called a round at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/sync/outer_step.h"
#include "core/train/replica.h"

namespace cafetiere {

/// Holds what all replicas agree on between rounds, makes the next of it out of what they trained,
/// and writes models and states.
class Rounds {
 public:
  /// `options.shard` and `options.inputs` mean nothing here.
  static Result<std::unique_ptr<Rounds>> create(ReplicaOptions options);

  /// Copies weights by layer name; then, given a state, goes on from its iteration.
  Status restore(const StoredWeights& weights, const std::shared_ptr<StateSource>& state = nullptr);

  const caffe::SolverParameter& solver() const { return options_.solver.param; }
  HistoryRule rule() const { return rule_; }
  size_t kinds() const { return kinds_; }
  /// Floats of an arena.
  size_t floats() const { return size_t(graph_.arena_size()); }
  /// Of everything random, also of how rows are dealt.
  uint64_t seed() const { return seed_of(options_); }
  /// The iteration that comes next.
  int iter() const { return iter_; }
  /// Iterations of the next round; 0 at the end.
  int length() const;
  /// What a round begins with, laid out as shared_floats() says.
  std::span<const float> shared() const { return shared_; }

  /// Ends a round. `sums` are what the replicas ended it with, added up in the shard tree over groups
  /// of consecutive shards that are all of one size, a power of two, but for the last, which may be
  /// smaller (tree_sum_of). The bits do not depend on the size.
  Status end_round(std::span<const std::span<const float>> sums);

  /// Weights as a caffemodel.
  Result<std::string> model() const;
  /// Iteration and history as a solverstate; `replicas` is the history of each shard, an arena a
  /// kind, where each keeps its own.
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
  std::optional<OuterStep> outer_;  // where the mode has one
};

/// The sum of equally long arrays, in the tree over as many shards.
Result<std::vector<float>> tree_sum_of(std::span<const std::span<const float>> arrays);

}  // namespace cafetiere
