#include "core/train/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/data/rows_source.h"
#include "core/solver/clip.h"

namespace cafetiere {

Trainer::Loop::Rows Trainer::Loop::rows_of(int shard, int64_t sub_step, int shards) const {
  if (train->empty()) return {0, 0, 0};
  const Source& source = *train->front().source;
  Rows r{source.rows(shard, sub_step), 0, 0};
  for (int s = 0; s < shards; ++s) {
    const int64_t n = source.rows(s, sub_step);
    if (s < shard) r.first += n;
    r.total += n;
  }
  return r;
}

int64_t Trainer::Loop::batches_per_epoch() const {
  if (train->empty()) return 0;
  const auto* rows = dynamic_cast<const RowsSource*>(train->front().source);
  return rows ? rows->sampler().batches_per_epoch() : 0;
}

double Trainer::Loop::epoch(int64_t sub_steps) const {
  const int64_t batches = batches_per_epoch();
  return batches > 0 ? double(sub_steps) / double(batches) : 0;
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
  double sum = 0;
  for (const auto& p : prefetch) sum += p->wait_seconds();
  return sum;
}

/// Every rank: gathers the losses of all shards since the last report; rank 0 tells them. `iter` is
/// the iteration that was computed last.
Status Trainer::report(Loop& loop, int iter) {
  const caffe::SolverParameter& p = options_.solver.param;
  CFT_ASSIGN(Plan * plan, plans_->at(0));
  const int k = int(1 + plan->outputs().size()), steps = loop.steps_pending;
  std::vector<double> mine;
  for (auto& values : loop.pending) {
    mine.insert(mine.end(), values.begin(), values.end());
    values.clear();
  }
  std::vector<double> all(size_t(options_.shards * steps * k));
  CFT_TRY(gather_shard_values(loop.group, options_.shards, mine, steps * k, all));
  const auto total = [&](int step, int which) {
    std::vector<double> terms;
    for (int s = 0; s < options_.shards; ++s) {
      terms.push_back(all[size_t((s * steps + step) * k + which)]);
    }
    return tree_sum(terms);
  };
  for (int step = 0; step < steps; ++step) {
    loop.recent_losses.push_back(total(step, 0));
    if (int(loop.recent_losses.size()) > p.average_loss()) loop.recent_losses.pop_front();
    if (!std::isfinite(loop.recent_losses.back())) {
      return invalid_argument(fmt::format(
          "the loss became {} at iteration {}; lower base_lr, or set clip_gradients in the solver",
          loop.recent_losses.back(), iter - steps + 1 + step));
    }
  }
  double sum = 0;
  for (double loss : loop.recent_losses) sum += loss;
  loop.last_loss = sum / double(loop.recent_losses.size());

  const double elapsed = std::max(1e-9, Loop::seconds(loop.last_report));
  const double waited = loop.wait_seconds();
  Progress event{
      .step = iter + 1,
      .max_iter = p.max_iter(),
      .epoch = loop.epoch(int64_t(iter + 1) * loop.passes),
      .loss = loop.last_loss,
      .lr = double(loop.last_rate),
      .rows_per_s = double(loop.rows_since_report) * size_of(loop.group) / elapsed,
      .wait_data = (waited - loop.last_wait) / elapsed,
      .wait_comm = size_of(loop.group) > 1 ? (loop.sync_seconds - loop.last_sync) / elapsed : 0,
      .seconds = Loop::seconds(loop.start),
      .outputs = {}};
  for (int i = 1; i < k; ++i) {
    event.outputs.emplace_back(plan->outputs()[size_t(i - 1)].name, total(steps - 1, i));
  }
  if (p.display() > 0) {
    options_.log.info("Iteration {} ({:g} iter/s, {:g}s/{} iters), loss = {:g}", iter,
                      steps / elapsed, elapsed, steps, loop.last_loss);
    for (int i = 1; i < k; ++i) {
      const Plan::Blob& out = plan->outputs()[size_t(i - 1)];
      options_.log.info("    Train net output #{}: {} = {:g}{}", i - 1, out.name,
                        event.outputs[size_t(i - 1)].second,
                        loss_note(out.loss_weight, event.outputs[size_t(i - 1)].second));
    }
    options_.log.info("Iteration {}, lr = {:g}", iter, loop.last_rate);
  }
  if (options_.events && rank_of(loop.group) == 0) options_.events->progress(event);
  int64_t next = std::clamp<int64_t>(int64_t(steps / elapsed), 1, 1000);
  CFT_TRY(broadcast(loop.group, 0, std::as_writable_bytes(std::span(&next, 1))));
  loop.report_every = int(next);
  loop.steps_pending = 0;
  loop.last_report = Loop::Clock::now();
  loop.last_wait = waited;
  loop.last_sync = loop.sync_seconds;
  loop.rows_since_report = 0;
  return {};
}

}  // namespace cafetiere
