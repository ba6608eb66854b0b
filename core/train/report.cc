// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/solver/clip.h"
#include "core/train/loop.h"

namespace cafetiere {
namespace {

/// The sum over all shards of value `which` of `k` that each one gave.
double total_of(std::span<const double> all, int shards, int k, int which) {
  std::vector<double> terms;
  for (int s = 0; s < shards; ++s) terms.push_back(all[size_t(s * k + which)]);
  return tree_sum(terms);
}

}  // namespace

Trainer::Loop::Rows Trainer::Loop::rows_of(int shard, int64_t sub_step, int shards) const {
  if (train->empty()) return {0, 0, 0, 0};
  const Source& source = *train->front().source;
  const ShardRange partners = sync->partners(shard);
  Rows r{source.rows(shard, sub_step), 0, 0, 0};
  for (int s = 0; s < shards; ++s) {
    const int64_t n = source.rows(s, sub_step);
    if (s < shard) r.first += n;
    if (s >= partners.begin && s < partners.end) r.together += n;
    r.total += n;
  }
  return r;
}

int64_t Trainer::Loop::batches_per_epoch() const {
  if (train->empty()) return 0;
  return train->front().source->batches_per_epoch();
}

double Trainer::Loop::epoch(int64_t sub_steps) const {
  const int64_t batches = batches_per_epoch();
  return batches > 0 ? double(sub_steps) / double(batches) : 0;
}

void Trainer::Loop::prefetch_from(int iter, int length, int max_iter) {
  const ShardRange mine = sync->shards();
  round_length = length;
  waited_before = wait_seconds();
  prefetch.clear();
  for (const Feed& feed : *train) {
    const BatchSequence sequence{mine, int64_t(iter) * passes, int64_t(max_iter) * passes,
                                 int64_t(length) * passes};
    prefetch.push_back(std::make_unique<Prefetch>(feed.source, sequence));
  }
}

void Trainer::Loop::count_rows(int64_t sub_step, int64_t rows) {
  const int64_t batches = batches_per_epoch();
  const int64_t first = batches > 0 ? int64_t(first_iter) * passes / batches : 0;
  const size_t epoch = batches > 0 ? size_t(sub_step / batches - first) : 0;
  if (rows_by_epoch.size() <= epoch) rows_by_epoch.resize(epoch + 1, 0);
  rows_by_epoch[epoch] += rows;
  rows_since_report += rows;
}

Result<std::vector<int64_t>> Trainer::Loop::all_rows() const {
  if (!meets()) return rows_by_epoch;
  CFT_ASSIGN(const auto parts, all_gather_v(group, std::as_bytes(std::span(rows_by_epoch))));
  std::vector<int64_t> sum;
  for (const auto& bytes : parts) {
    std::vector<int64_t> rows(bytes.size() / sizeof(int64_t));
    if (!rows.empty()) std::memcpy(rows.data(), bytes.data(), bytes.size());
    sum.resize(std::max(sum.size(), rows.size()), 0);
    for (size_t i = 0; i < rows.size(); ++i) sum[i] += rows[i];
  }
  return sum;
}

double Trainer::Loop::wait_seconds() const {
  double sum = waited_before;
  for (const auto& p : prefetch) sum += p->wait_seconds();
  return sum;
}

double Trainer::Loop::smoothed(double loss, int window) {
  recent_losses.push_back(loss);
  if (int(recent_losses.size()) > window) recent_losses.pop_front();
  return std::accumulate(recent_losses.begin(), recent_losses.end(), 0.0) /
         double(recent_losses.size());
}

/// Every rank: gathers the losses of all shards since the last report; rank 0 tells them. `iter` is
/// the iteration that was computed last; `shown` puts it into the log.
Status Trainer::report(Loop& loop, int iter, bool shown) {
  const caffe::SolverParameter& p = options_.solver.param;
  const int steps = loop.steps_pending, k = steps + int(loop.output_count);
  std::vector<double> mine;
  for (Loop::ShardValues& values : loop.values) {
    mine.insert(mine.end(), values.losses.begin(), values.losses.end());
    mine.insert(mine.end(), values.outputs.begin(), values.outputs.end());
    values.losses.clear();
  }
  const int shards = loop.reported_shards();
  std::vector<double> all(size_t(shards * k));
  CFT_TRY(gather_shard_values(loop.meets() ? loop.group : nullptr, shards, mine, k, all));
  for (int step = 0; step < steps; ++step) {
    const double loss = total_of(all, shards, k, step);
    if (!std::isfinite(loss)) {
      return invalid_argument(fmt::format(
          "the loss became {} at iteration {}; lower base_lr, or set clip_gradients in the solver",
          loss, iter - steps + 1 + step));
    }
    loop.last_loss = loop.smoothed(loss, p.average_loss());
  }
  std::vector<double> outputs;
  for (int i = steps; i < k; ++i) outputs.push_back(total_of(all, shards, k, i));
  const double elapsed = std::max(1e-9, Loop::seconds(loop.last_report));
  if (shown) {
    options_.log.info("Iteration {} ({:g} iter/s, {:g}s/{} iters), loss = {:g}", iter,
                      steps / elapsed, elapsed, p.display(), loop.last_loss);
    CFT_TRY(log_outputs(outputs));
    options_.log.info("Iteration {}, lr = {:g}", iter, loop.last_rate);
  }
  CFT_TRY(send_progress(loop, iter, elapsed, outputs));
  struct {
    int32_t report_every;
    bool stop, snapshot;
  } next{int32_t(std::clamp(steps / elapsed, 1., 1000.)), stop_, snapshot_now_};
  if (loop.meets()) {
    CFT_TRY(broadcast(loop.group, 0, std::as_writable_bytes(std::span(&next, 1))));
  }
  loop.report_every = next.report_every;
  if (loop.meets()) {
    loop.asked = {next.stop, next.snapshot};
    if (next.snapshot) snapshot_now_ = false;
  }
  loop.steps_pending = 0;
  loop.last_report = Loop::Clock::now();
  loop.last_wait = loop.wait_seconds();
  loop.last_sync = loop.sync_seconds;
  loop.rows_since_report = 0;
  return {};
}

/// A line for every element of every output of the training net.
Status Trainer::log_outputs(std::span<const double> values) {
  CFT_ASSIGN(const Plan* plan, plans_->at(0));
  size_t at = 0;
  for (const Plan::Blob& out : plan->outputs()) {
    for (int64_t i = 0; i < out.shape.count(); ++i, ++at) {
      options_.log.info("    Train net output #{}: {} = {:g}{}", at, out.name, values[at],
                        loss_note(out.loss_weight, values[at]));
    }
  }
  return {};
}

/// Rank 0 tells where the run stands; of an output with many elements, the first.
Status Trainer::send_progress(const Loop& loop, int iter, double elapsed,
                              std::span<const double> outputs) {
  if (!options_.events || rank_of(loop.group) != 0) return {};
  Progress event{
      .step = iter + 1,
      .max_iter = options_.solver.param.max_iter(),
      .epoch = loop.epoch(int64_t(iter + 1) * loop.passes),
      .loss = loop.last_loss,
      .lr = double(loop.last_rate),
      .rows_per_s = double(loop.rows_since_report) * size_of(loop.group) / elapsed,
      .wait_data = (loop.wait_seconds() - loop.last_wait) / elapsed,
      .wait_comm = size_of(loop.group) > 1 ? (loop.sync_seconds - loop.last_sync) / elapsed : 0,
      .seconds = Loop::seconds(loop.start),
      .outputs = {}};
  CFT_ASSIGN(const Plan* plan, plans_->at(0));
  size_t at = 0;
  for (const Plan::Blob& out : plan->outputs()) {
    if (out.shape.count() > 0) event.outputs.emplace_back(out.name, outputs[at]);
    at += size_t(out.shape.count());
  }
  options_.events->progress(event);
  return {};
}

}  // namespace cafetiere
