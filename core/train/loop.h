// Trainer::Loop: what one run of the training loop keeps between steps.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

#include "core/comm/collectives.h"
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
  std::unique_ptr<AllReduce> sync;
  std::vector<std::unique_ptr<Prefetch>> prefetch;
  int passes = 1;
  int history_per_param = 0;
  int first_iter = 0;
  int checkpoint_iter = -1;

  /// What a shard's passes gave, weighted by its share of the rows.
  struct ShardValues {
    std::vector<double> losses;   ///< of every step since the last report
    std::vector<double> outputs;  ///< of the last step: every element of the net's outputs
  };
  std::vector<ShardValues> values;  ///< by owned shard
  size_t output_count = 0;          ///< elements of the net's outputs
  int steps_pending = 0;
  int report_every = 1;  ///< without `display`: about once a second, as rank 0 measures
  std::deque<double> recent_losses;
  double last_loss = 0;
  float last_rate = 0;
  std::vector<float> weights_before;  ///< the last update, for snapshot_diff

  Clock::time_point start, last_report;
  double compute_seconds = 0, sync_seconds = 0, last_wait = 0, last_sync = 0;
  std::vector<int64_t> rows_by_epoch;  ///< of this rank
  int64_t rows_since_report = 0;

  bool report_now(int iter, const caffe::SolverParameter& p) const {
    if (p.display() > 0) return iter % p.display() == 0;
    return steps_pending >= report_every;
  }
  /// The mean of the last `window` losses, `loss` being the newest.
  double smoothed(double loss, int window);

  /// A shard's rows at a sub-step, the index of the first among all shards', and the rows of all.
  struct Rows {
    int64_t rows, first, total;
  };
  Rows rows_of(int shard, int64_t sub_step, int shards) const;
  void count_rows(int64_t sub_step, int64_t rows);
  Result<std::vector<int64_t>> all_rows() const;
  double wait_seconds() const;
  double epoch(int64_t sub_steps) const;
  int64_t batches_per_epoch() const;
};

}  // namespace cafetiere
