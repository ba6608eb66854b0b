// SPDX-License-Identifier: Apache-2.0
// Trainer::Loop: the state of one run of the training loop, kept between steps.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

#include "core/comm/collectives.h"
#include "core/comm/shard_tree.h"
#include "core/train/shard_runner.h"
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
  std::optional<ShardRunner> runner;
  int shards = 1;  ///< of all ranks together
  int span = 0;    ///< iterations since the ranks agreed before, none before the first
  int history_per_param = 0;
  int checkpoint_iter = -1;
  bool ended = false;  ///< the final consolidation is done

  int steps_pending = 0;  ///< iterations since the last report
  /// The activity during an exchange; a rank without peers only computes sums.
  Activity exchanging() const {
    return size_of(group) > 1 ? Activity::kNetwork : Activity::kComputing;
  }
  bool is_synchronous() const { return group != nullptr && sync->is_synchronous(); }
  /// Whether the ranks hold the weights that they agree on, in modes where they wait for each other. Tests
  /// and checkpoints wait for it: they must not change when the ranks agree.
  bool is_agreed() const { return !is_synchronous() || sync->replicas_equal(); }
  /// The number of shards whose values a report sums.
  int reported_shards() const { return is_synchronous() ? shards : int(runner->values().size()); }

  /// Requests to rank 0, sent to all ranks.
  struct Requests {
    bool stop = false, snapshot = false;
  };
  Requests asked;
  int report_every = 1;   ///< about once per second by rank 0's clock
  int steps_unheard = 0;  ///< iterations since requests were asked for
  std::deque<double> recent_losses;
  double last_loss = 0;
  float last_rate = 0;
  std::optional<Progress> last_progress;  ///< of the last iteration, until it has been tested
  std::vector<float> weights_before;      ///< before the last update, for snapshot_diff

  int first_iter = 0;  ///< the iteration that the run began with
  Clock::time_point start, last_report, last_heard;
  double sync_seconds = 0, last_wait = 0, last_sync = 0;
  int64_t rows = 0, last_rows = 0;  ///< rows used by this rank; those up to the last report

  /// The mean of the last `window` losses, of which `loss` is the newest.
  double smoothed(double loss, int window);
};

}  // namespace cafetiere
