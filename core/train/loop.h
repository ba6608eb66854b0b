// SPDX-License-Identifier: Apache-2.0
// Trainer::Loop: what one run of the training loop keeps between steps.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

#include "core/comm/collectives.h"
#include "core/comm/shard_tree.h"
#include "core/data/prefetch.h"
#include "core/train/trainer.h"

namespace cafetiere {

struct Trainer::Loop {
  using Clock = std::chrono::steady_clock;
  static double seconds(Clock::time_point since) {
    return std::chrono::duration<double>(Clock::now() - since).count();
  }

  Group* group = nullptr;
  const std::vector<Feed>* train = nullptr;
  const std::vector<TestFeed>* tests = nullptr;
  std::optional<LrPolicy> policy;
  std::unique_ptr<Sync> sync;
  std::vector<std::unique_ptr<Prefetch>> prefetch;
  int shards = 1;  ///< of all ranks
  int passes = 1;
  int round_length = 0;  ///< for which the batches are prefetched
  int history_per_param = 0;
  int first_iter = 0;
  int checkpoint_iter = -1;
  bool ended = false;  ///< the ranks have met for the last time

  /// What a shard's passes gave, weighted by its share of the rows.
  struct ShardValues {
    std::vector<double> losses;   ///< of every step since the last report
    std::vector<double> outputs;  ///< of the last step: every element of the net's outputs
    double loss = 0;              ///< of the last step, the shard's own mean
    int64_t rows = 0;             ///< of the last step
  };
  std::vector<ShardValues> values;  ///< by owned shard
  size_t output_count = 0;          ///< elements of the net's outputs
  int steps_pending = 0;
  bool meets() const { return group != nullptr && sync->meets(); }
  /// The shards whose values a report adds up.
  int reported_shards() const { return meets() ? shards : int(values.size()); }

  /// What rank 0 was asked for, told to all ranks with each report.
  struct Requests {
    bool stop = false, snapshot = false;
  };
  Requests asked;
  int report_every = 1;  ///< without `display`: about once a second, as rank 0 measures
  std::deque<double> recent_losses;
  double last_loss = 0;
  float last_rate = 0;
  std::vector<float> weights_before;  ///< the last update, for snapshot_diff

  Clock::time_point start, last_report;
  double waited_before = 0;  ///< for batches of prefetches that are gone
  double compute_seconds = 0, sync_seconds = 0, last_wait = 0, last_sync = 0;
  std::vector<int64_t> rows_by_epoch;  ///< of this rank
  int64_t rows_since_report = 0;

  /// Batches from the iteration on, in the order that rounds of this length ask for them.
  void prefetch_from(int iter, int length, int max_iter);
  /// The mean of the last `window` losses, `loss` being the newest.
  double smoothed(double loss, int window);

  /// A shard's rows at a sub-step, the index of the first among all shards', the rows of those that
  /// step together with it, and the rows of all.
  struct Rows {
    int64_t rows, first, together, total;

    /// What part of the gradient, and of the reported loss, is this shard's.
    float step_share(int partners) const {
      return together > 0 ? float(rows) / float(together) : 1.f / float(partners);
    }
    double loss_share(int shards) const {
      return total > 0 ? double(float(rows) / float(total)) : double(1.f / float(shards));
    }
  };
  Rows rows_of(int shard, int64_t sub_step, int shards) const;
  void count_rows(int64_t sub_step, int64_t rows);
  Result<std::vector<int64_t>> all_rows() const;
  double wait_seconds() const;
  double epoch(int64_t sub_steps) const;
  int64_t batches_per_epoch() const;
};

}  // namespace cafetiere
