// SPDX-License-Identifier: Apache-2.0
// ShardRunner: the iterations of a training run's shards, both for ranks in a group and for
// replicas that are called round by round.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/base/log.h"
#include "core/base/thread_pool.h"
#include "core/data/prefetch.h"
#include "core/observe/time_account.h"
#include "core/observe/trace.h"
#include "core/solver/lr_policy.h"
#include "core/sync/sync.h"
#include "core/train/output_values.h"
#include "core/train/plan_set.h"

namespace cafetiere {

/// The update inputs of each iteration in [iter, iter + length). Advances `current_step`, the step
/// counter of policy "multistep".
std::vector<UpdateStep> update_steps(const LrPolicy& policy, const caffe::SolverParameter& solver,
                                     int iter, int length, int* current_step, const Logger& log);

/// The step counter of policy "multistep" at the start of iteration `iter`.
int current_step_at(const LrPolicy& policy, int iter);

/// The only implementation of a shard's iteration: its batches, prefetched in order of use; the
/// plan for their number of rows; its passes; passing the gradient to the mode; and the values for
/// a report.
class ShardRunner {
 public:
  /// Everything pointed to must outlive the runner.
  struct Setup {
    const caffe::SolverParameter* solver = nullptr;
    PlanSet* plans = nullptr;
    class ImmediateUpdate* immediate = nullptr;  ///< if plans update the parameters; else null
    ThreadPool* pool = nullptr;
    std::span<float> weights, gradients;  ///< arenas bound to the plans; see `immediate`
    uint64_t seed = 1;
    int shards = 1;                            ///< of all processes together
    bool joint_values = true;                  ///< weight a shard's values by its share of all rows
    const std::vector<Feed>* feeds = nullptr;  ///< for the net's sources
    int prefetch_threads = 1;                  ///< threads filling batches, per feed
    const std::atomic<bool>* cancelled = nullptr;  ///< checked in each iteration
    std::atomic<int>* begun = nullptr;             ///< the current iteration; may be null
    Trace* trace = nullptr;                        ///< may be null
    TimeAccount* account = nullptr;                ///< records waits for batches; may be null
    /// Called before a pass whose iteration is displayed; may be empty.
    std::function<Status(const Plan&)> before_shown = {};
  };

  /// The results of a shard's passes.
  struct Values {
    std::vector<double> losses;   ///< per iteration since clear_losses(), times the shard's share
    std::vector<double> outputs;  ///< of the last iteration, times the shard's share (OutputValues)
    double loss = 0;              ///< of the last iteration, the shard's own mean
    int64_t rows = 0;             ///< of the last iteration
  };

  static Result<ShardRunner> create(Setup setup, ShardUpdate* update);

  /// Trains the iterations of one round, for each of the update's shards in turn. Returns
  /// kCancelled once `cancelled` is set.
  Status round(std::span<const UpdateStep> steps);
  /// The loss of each of the update's shards on a batch, times its share of the rows; does not
  /// train.
  Result<std::vector<double>> losses_at(int64_t sub_step);

  /// Per shard of the update.
  const std::vector<Values>& values() const { return values_; }
  void clear_losses() {
    for (Values& values : values_) values.losses.clear();
  }
  const OutputValues& outputs() const { return *outputs_; }
  /// Rows used since they were cleared, by epoch.
  const std::map<int64_t, int64_t>& rows_by_epoch() const { return rows_by_epoch_; }
  void clear_rows() { rows_by_epoch_.clear(); }
  /// Epochs finished before this sub-step, including the fraction of the current one; 0 without
  /// epochs.
  double epochs_at(int64_t sub_step) const;

  /// Seconds so far in the net, and waiting for batches.
  double compute_seconds() const { return compute_seconds_; }
  double wait_seconds() const;
  /// Stops prefetching, which uses the sources.
  void stop_prefetch();

 private:
  /// A shard's rows at a sub-step, the index of the first among the rows of all shards, the rows of
  /// its step group, and those of all shards.
  struct Rows {
    int64_t rows = 0, first = 0, together = 0, total = 0;
  };
  ShardRunner(Setup setup, ShardUpdate* update) : s_(std::move(setup)), update_(update) {}
  Rows rows_of(int shard, int64_t sub_step) const;
  /// The shard's weight in its step group's gradient.
  float step_share(int shard, const Rows& rows) const;
  /// The shard's weight in the reported loss.
  double value_share(const Rows& rows) const;
  void prefetch(int iter, int length);
  Status iteration(int shard, const UpdateStep& step);
  Status pass(int shard, const UpdateStep& step, int index, Values& values);
  Status compute(Plan& plan, int shard, const UpdateStep& step, int index, const Rows& rows);

  Setup s_;
  ShardUpdate* update_;
  std::optional<OutputValues> outputs_;
  std::vector<std::unique_ptr<Prefetch>> prefetch_;  // one per feed
  int next_iter_ = -1;                               // first iteration after the prefetched batches
  int round_length_ = 0;
  std::vector<Values> values_;
  std::map<int64_t, int64_t> rows_by_epoch_;
  double compute_seconds_ = 0;
  double waited_before_ = 0;  // seconds spent waiting in earlier prefetches
};

}  // namespace cafetiere
