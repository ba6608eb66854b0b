// SPDX-License-Identifier: Apache-2.0
// Replica: one shard of a training run as a separate net, for engines that call each round and
// transfer the weights between rounds themselves.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/data/rows_source.h"
#include "core/device/host_memory.h"
#include "core/model/prototxt.h"
#include "core/solver/lr_policy.h"
#include "core/sync/replicas.h"
#include "core/train/embedding_posterior.h"
#include "core/train/history.h"
#include "core/train/rows_feed.h"
#include "core/train/shard_runner.h"
#include "core/train/tester.h"

namespace cafetiere {

struct ReplicaOptions {
  SolverText solver;
  NetText net;  ///< used if `has_net`; otherwise the solver's net
  bool has_net = false;
  int shard = 0, shards = 1;
  int threads = 1;
  int prefetch_threads = 1;
  uint64_t seed = 1;     ///< used for everything the solver's random_seed does not set
  int64_t max_iter = 0;  ///< 0 = the solver's
  InputBindings inputs;
  Logger log;
};

/// Checks solver and sync settings, and copies `max_iter` into the solver.
Status settle_options(ReplicaOptions& options);
/// The random seed.
uint64_t seed_of(const ReplicaOptions& options);
/// The training net, as named and as built.
Result<NetChoice> training_choice(const ReplicaOptions& options);
Result<Graph> training_graph(const NetChoice& choice);

/// The number of floats that replicas exchange after each round: the weights and, if history is
/// averaged, one more arena per kind.
size_t shared_floats(const Graph& graph, size_t kinds, HistoryRule rule);

/// The result of a shard's round.
struct RoundReport {
  std::vector<double> losses;  ///< per iteration, times the shard's share of all rows
  std::vector<std::pair<int64_t, int64_t>> rows;  ///< (epoch, rows used)
  double epoch = 0;                               ///< epochs finished, including the fraction of
                                                  ///< the current one
  float rate = 0;                                 ///< learning rate of the last iteration
  double compute_seconds = 0, wait_seconds = 0;   ///< in the net; waiting for rows
};

/// Test scores of a shard's held-out rows, as means over `rows` rows.
struct ShardScores {
  std::string net;
  int64_t rows = 0;
  TestScores scores;
};

/// Starts each round from the given weights and ends it with its own. The history stays in the
/// replica between rounds (HistoryRule::kKept). Unusable after an error.
class Replica {
 public:
  /// Builds the nets; allocates weights, gradients and history.
  static Result<std::unique_ptr<Replica>> create(ReplicaOptions options);

  /// Sets the shard's rows, in the order of their global positions (data/shard_store.h) among
  /// `total_rows`, and checks each of them. Call before the first round.
  Status feed(RowTable&& rows, int64_t total_rows);
  /// Sets the rows held out for the solver's test net; may be empty. Call before test().
  Status hold_out(RowTable&& rows);
  /// Restores the shard's history from a state of all shards.
  Status restore(const std::shared_ptr<StateSource>& state);

  /// Trains iterations [iter, iter + steps) starting from the `shared` floats, and overwrites them
  /// with this replica's.
  Result<RoundReport> round(int iter, int steps, std::span<float> shared);
  /// Tests the `shared` weights on the held-out rows.
  Result<ShardScores> test(std::span<const float> shared);
  /// The shard's sums for a posterior (EmbeddingPosterior::sum_shard) that Rounds has begun;
  /// `floats` are those of Rounds::begin_posterior().
  Result<std::vector<float>> sum_posterior(std::span<const float> floats);
  /// History, one arena per kind.
  const HistoryArenas& history() { return replicas_->history(0); }
  /// From any thread: the number of iterations done, including those of the current round.
  int step() const { return step_; }
  /// From any thread: the current round fails with kCancelled at its next iteration.
  void cancel() { cancelled_ = true; }

 private:
  explicit Replica(ReplicaOptions options) : options_(std::move(options)) {}
  Status build();
  Status build_test();
  Status take(std::span<const float> shared);
  void give(std::span<float> shared);
  Status check_losses(std::span<const double> losses, int iter) const;

  std::span<float> weights() { return {weights_.get(), size_t(graph_.arena_size())}; }
  std::span<float> gradients() { return {gradients_.get(), size_t(graph_.arena_size())}; }

  ReplicaOptions options_;
  HistoryRule rule_ = HistoryRule::kKept;
  Graph graph_;
  std::vector<EmbeddingPosterior> posteriors_;
  std::optional<Graph> test_graph_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<ThreadPool> pool_;
  std::shared_ptr<float> weights_, gradients_;
  std::vector<float> test_params_;  // of layers that are not in the training net
  std::unique_ptr<PlanSet> plans_;
  std::unique_ptr<Tester> tester_;
  std::optional<LrPolicy> policy_;
  std::unique_ptr<Replicas> replicas_;
  std::unique_ptr<RowsSource> source_, held_out_;
  std::vector<std::string> test_tops_;  // fed by the held-out rows
  std::vector<Feed> feeds_;             // source_, if there is one
  std::atomic<int> step_{0};
  std::atomic<bool> cancelled_{false};
  std::optional<ShardRunner> runner_;  // last, because it uses all of the above
};

}  // namespace cafetiere
