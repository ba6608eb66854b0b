// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/solver/clip.h"
#include "core/train/loop.h"
#include "core/train/solver_checks.h"

namespace cafetiere {

/// Counts the rows of a completed round.
void Trainer::count_rows(Loop& loop) {
  const RowCounts::ByEpoch& round = loop.runner->rows_by_epoch();
  for (const auto& [epoch, rows] : round) loop.rows += rows;
  rows_used_.add(round);
  loop.runner->clear_rows();
}

/// Called once, after the last round: sums the rows used by the ranks.
Status Trainer::sum_rows(Loop& loop) {
  using Nanos = std::chrono::nanoseconds;
  const TimeAccount::Span time(&options_.time, loop.exchanging());
  std::vector<int64_t> mine{loop.rows};  // then the time account, then pairs of epoch and rows
  for (const double s : options_.time.seconds()) mine.push_back(int64_t(s * Nanos::period::den));
  for (const auto& [epoch, rows] : rows_used()) mine.insert(mine.end(), {epoch, rows});
  CFT_ASSIGN(const auto parts, loop.sync->gather_at_end(std::as_bytes(std::span(mine))));
  int64_t of_run = 0;
  RowCounts::ByEpoch sum;
  summary_.rank_seconds.assign(parts.size(), {});
  for (size_t rank = 0; rank < parts.size(); ++rank) {
    std::vector<int64_t> given(parts[rank].size() / sizeof(int64_t));
    if (given.size() <= kActivities) continue;  // a lost rank
    std::memcpy(given.data(), parts[rank].data(), given.size() * sizeof(int64_t));
    of_run += given[0];
    for (size_t i = 0; i < kActivities; ++i) {
      summary_.rank_seconds[rank][i] = double(given[1 + i]) / Nanos::period::den;
    }
    for (size_t i = 1 + kActivities; i + 1 < given.size(); i += 2) sum[given[i]] += given[i + 1];
  }
  summary_.rows_per_epoch.clear();
  for (const auto& [epoch, rows] : sum) {
    summary_.rows_per_epoch.resize(size_t(epoch - sum.begin()->first), 0);
    summary_.rows_per_epoch.push_back(rows);
  }
  const double seconds = Loop::seconds(loop.start);
  summary_.rows_per_s = seconds > 0 ? double(of_run) / seconds : 0;
  return {};
}

double Trainer::Loop::smoothed(double loss, int window) {
  recent_losses.push_back(loss);
  if (int(recent_losses.size()) > window) recent_losses.pop_front();
  return std::accumulate(recent_losses.begin(), recent_losses.end(), 0.0) /
         double(recent_losses.size());
}

/// Gathers the losses of all shards since the last report, which rank 0 reports. Every rank calls
/// it. `iter` is the last computed iteration; it is logged if `shown`.
Status Trainer::report(Loop& loop, int iter, bool shown) {
  const TimeAccount::Span time(&options_.time, loop.exchanging());
  const caffe::SolverParameter& p = options_.solver.param;
  const int steps = loop.steps_pending, k = steps + int(loop.runner->outputs().count());
  std::vector<double> mine;
  for (const ShardRunner::Values& values : loop.runner->values()) {
    mine.insert(mine.end(), values.losses.begin(), values.losses.end());
    mine.insert(mine.end(), values.outputs.begin(), values.outputs.end());
  }
  loop.runner->clear_losses();
  const int shards = loop.reported_shards();
  std::vector<double> all(size_t(shards) * size_t(k));
  CFT_TRY(gather_shard_values(loop.is_synchronous() ? loop.group : nullptr, shards, mine, k, all));
  for (int step = 0; step < steps; ++step) {
    const double loss = shard_sum(all, shards, step);
    CFT_TRY(check_loss(loss, iter - steps + 1 + step));
    loop.last_loss = loop.smoothed(loss, p.average_loss());
  }
  std::vector<double> outputs;
  for (int i = steps; i < k; ++i) outputs.push_back(shard_sum(all, shards, i));
  const double elapsed = std::max(1e-9, Loop::seconds(loop.last_report));
  if (shown) {
    options_.log.info("Iteration {} ({:g} iter/s, {:g}s/{} iters), loss = {:g}", iter,
                      steps / elapsed, elapsed, steps, loop.last_loss);
    log_outputs(loop, outputs);
    options_.log.info("Iteration {}, lr = {:g}", iter, loop.last_rate);
  }
  CFT_ASSIGN(RankTimes times, rank_times(loop, elapsed));
  send_progress(loop, iter, elapsed, outputs, std::move(times));
  CFT_TRY(hear_requests(loop));
  loop.steps_pending = 0;
  loop.last_report = Loop::Clock::now();
  loop.last_wait = loop.runner->wait_seconds();
  loop.last_sync = loop.sync_seconds;
  loop.last_rows = loop.rows;
  return {};
}

/// What was asked of rank 0, which all ranks do after the same iteration. Every rank calls it.
Status Trainer::hear_requests(Loop& loop) {
  const TimeAccount::Span time(&options_.time, loop.exchanging());
  const double elapsed = std::max(1e-9, Loop::seconds(loop.last_heard));
  struct {
    int32_t report_every;
    bool stop, snapshot;
  } next{int32_t(std::clamp(loop.steps_unheard / elapsed, 1., 1000.)), stop_, snapshot_now_};
  if (loop.is_synchronous()) {
    CFT_TRY(broadcast(loop.group, 0, std::as_writable_bytes(std::span(&next, 1))));
    loop.asked = {next.stop, loop.asked.snapshot || next.snapshot};
    if (next.snapshot) snapshot_now_ = false;
  }
  loop.report_every = next.report_every;
  loop.steps_unheard = 0;
  loop.last_heard = Loop::Clock::now();
  return check_cancelled();
}

/// Each rank's time by activity since the last report; empty if ranks report separately. Every rank
/// calls it.
Result<RankTimes> Trainer::rank_times(const Loop& loop, double elapsed) {
  const bool alone = size_of(loop.group) == 1;
  if (!alone && !loop.is_synchronous()) return RankTimes();
  const double comm = alone ? 0 : loop.sync_seconds - loop.last_sync;
  const std::array<double, 3> mine{(elapsed - comm) / loop.steps_pending * 1e3,
                                   (loop.runner->wait_seconds() - loop.last_wait) / elapsed,
                                   comm / elapsed};
  std::vector<std::array<double, 3>> all(size_t(size_of(loop.group)));
  CFT_TRY(all_gather(loop.group, std::as_bytes(std::span(mine)),
                     std::as_writable_bytes(std::span(all))));
  RankTimes times;
  for (const auto& [step_ms, wait_data, wait_comm] : all) {
    times.step_ms.push_back(step_ms);
    times.wait_data.push_back(wait_data);
    times.wait_comm.push_back(wait_comm);
  }
  return times;
}

/// Logs a line for every value of every output of the training net.
void Trainer::log_outputs(const Loop& loop, std::span<const double> values) {
  for (const OutputValues::Output& out : loop.runner->outputs().outputs()) {
    for (size_t i = out.first; i < out.first + out.count; ++i) {
      options_.log.info("    Train net output #{}: {} = {:g}{}", i, out.name, values[i],
                        loss_note(out.loss_weight, values[i]));
    }
  }
}

/// Rank 0 sends a progress event, that of the last iteration when it has been tested; for an output
/// with several values, the first one.
void Trainer::send_progress(Loop& loop, int iter, double elapsed, std::span<const double> outputs,
                            RankTimes times) {
  if (!options_.events || rank_of(loop.group) != 0) return;
  Progress event{
      .step = iter + 1,
      .max_iter = options_.solver.param.max_iter(),
      .epoch = loop.runner->epochs_at(int64_t(iter + 1) * options_.solver.param.iter_size()),
      .loss = loop.last_loss,
      .lr = double(loop.last_rate),
      .rows_per_s = double(loop.rows - loop.last_rows) * size_of(loop.group) / elapsed,
      .wait_data = (loop.runner->wait_seconds() - loop.last_wait) / elapsed,
      .wait_comm = size_of(loop.group) > 1 ? (loop.sync_seconds - loop.last_sync) / elapsed : 0,
      .seconds = Loop::seconds(loop.start),
      .first_step = loop.first_iter,
      .outputs = {},
      .ranks = std::move(times)};
  for (const OutputValues::Output& out : loop.runner->outputs().outputs()) {
    if (out.count > 0) event.outputs.emplace_back(out.name, outputs[out.first]);
  }
  if (event.step < event.max_iter) {
    options_.events->progress(event);
  } else {
    loop.last_progress = std::move(event);
  }
}

}  // namespace cafetiere
