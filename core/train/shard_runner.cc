// SPDX-License-Identifier: Apache-2.0
#include "core/train/shard_runner.h"

#include <algorithm>
#include <chrono>

#include "core/train/immediate_update.h"
#include "core/train/solver_log.h"

namespace cafetiere {

std::vector<UpdateStep> update_steps(const LrPolicy& policy, const caffe::SolverParameter& solver,
                                     int iter, int length, int* current_step, const Logger& log) {
  std::vector<UpdateStep> steps;
  for (int i = iter; i < iter + length; ++i) {
    steps.push_back({.iter = i,
                     .rate = rate_at(policy, solver, i, current_step, log),
                     .gradient_scale = 1.f / float(solver.iter_size()),
                     .passes = solver.iter_size()});
  }
  return steps;
}

int current_step_at(const LrPolicy& policy, int iter) {
  int current_step = 0;
  for (int i = 0; i < iter; ++i) policy.rate(i, &current_step);
  return current_step;
}

Result<ShardRunner> ShardRunner::create(Setup setup, ShardUpdate* update) {
  ShardRunner runner(std::move(setup), update);
  CFT_ASSIGN(const Plan* full, runner.s_.plans->at(0));
  runner.outputs_.emplace(*full);
  runner.values_.resize(size_t(update->shards().size()));
  return runner;
}

Status ShardRunner::round(std::span<const UpdateStep> steps) {
  prefetch(steps.front().iter, int(steps.size()));
  const ShardRange mine = update_->shards();
  for (int shard = mine.begin; shard < mine.end; ++shard) {
    update_->begin_shard(shard, s_.weights);
    for (const UpdateStep& step : steps) CFT_TRY(iteration(shard, step));
    CFT_TRY(update_->end_shard(shard, s_.weights));
  }
  next_iter_ = steps.back().iter + 1;
  return {};
}

/// Prefetches batches from `iter` on, in the order in which rounds of this length use them.
void ShardRunner::prefetch(int iter, int length) {
  const ShardRange mine = update_->shards();
  const bool same_order = length == round_length_ || mine.size() == 1;
  if (iter == next_iter_ && same_order) return;
  stop_prefetch();
  round_length_ = length;
  const int64_t passes = s_.solver->iter_size();
  const BatchSequence sequence{mine, iter * passes, s_.solver->max_iter() * passes,
                               length * passes};
  for (const Feed& feed : *s_.feeds) {
    prefetch_.push_back(std::make_unique<Prefetch>(
        feed.source, sequence, batches_ahead(*feed.source), s_.prefetch_threads));
  }
}

void ShardRunner::stop_prefetch() {
  waited_before_ = wait_seconds();
  prefetch_.clear();
  next_iter_ = -1;
}

/// One iteration of one shard: its passes, then the mode's use of the gradient.
Status ShardRunner::iteration(int shard, const UpdateStep& step) {
  if (*s_.cancelled) return {ErrorCode::kCancelled, "the run was cancelled"};
  if (s_.begun) *s_.begun = step.iter;
  Values& values = values_[size_t(shard - update_->shards().begin)];
  values.losses.push_back(0);
  values.outputs.assign(outputs_->count(), 0);
  values.loss = 0;
  values.rows = 0;
  for (int i = 0; i < step.passes; ++i) CFT_TRY(pass(shard, step, i, values));
  // A shard that trains independently and has no rows left in this epoch skips the iteration:
  // momentum and decay must not change its weights either.
  const bool alone = update_->step_group(shard).size() == 1 && s_.shards > 1;
  if (alone && values.rows == 0 && !s_.feeds->empty()) return {};
  return update_->gradient(step, values.loss, s_.gradients, s_.weights);
}

Status ShardRunner::pass(int shard, const UpdateStep& step, int index, Values& values) {
  const int64_t sub_step = int64_t(step.iter) * step.passes + index;
  std::vector<Prefetch::Batch> batches;
  for (auto& prefetch : prefetch_) {
    const TimeAccount::Span time(s_.account, Activity::kData);
    CFT_ASSIGN(batches.emplace_back(), prefetch->next());
  }
  const Rows rows = rows_of(shard, sub_step);
  values.rows += rows.rows;
  const int64_t batches_per_epoch =
      s_.feeds->empty() ? 0 : s_.feeds->front().source->batches_per_epoch();
  rows_by_epoch_[batches_per_epoch > 0 ? sub_step / batches_per_epoch : 0] += rows.rows;
  if (!batches.empty() && rows.rows == 0) {  // an empty shard: no gradient and no statistics
    if (index == 0) std::ranges::fill(s_.gradients, 0.f);
    return {};
  }
  CFT_ASSIGN(Plan * plan, s_.plans->at(rows.rows));
  for (size_t i = 0; i < batches.size(); ++i) {
    feed_plan(*plan, (*s_.feeds)[i], batches[i].tops);
    prefetch_[i]->give_back();
  }
  const int display = s_.solver->display();
  const bool shown = display > 0 && step.iter % display == 0 && shard == 0 && index == 0;
  if (shown && s_.before_shown) CFT_TRY(s_.before_shown(*plan));
  CFT_TRY(compute(*plan, shard, step, index, rows));
  const double weight = value_share(rows) / step.passes;
  values.loss += double(plan->loss()) / step.passes;
  values.losses.back() += weight * double(plan->loss());
  outputs_->add(*plan, weight, values.outputs);
  return {};
}

/// Runs forward and backward. The last pass of a round reports gradients as soon as they are final.
Status ShardRunner::compute(Plan& plan, int shard, const UpdateStep& step, int index,
                            const Rows& rows) {
  const Trace::Span span(s_.trace, "step", "shard {}, step {}", shard, step.iter);
  const auto before = std::chrono::steady_clock::now();
  if (s_.immediate) s_.immediate->begin(step, s_.weights);
  const RunContext context{.seed = s_.seed,
                           .shard = shard,
                           .sub_step = int64_t(step.iter) * step.passes + index,
                           .first_sample = rows.first,
                           .loss_scale = step_share(shard, rows),
                           .accumulate = index > 0,
                           .update = s_.immediate};
  if (index + 1 == step.passes && shard + 1 == update_->shards().end) {
    CFT_TRY(plan.run(*s_.pool, context, [&](const float* from) {
      update_->final_from(s_.gradients, size_t(from - s_.gradients.data()));
    }));
  } else {
    CFT_TRY(plan.run(*s_.pool, context));
  }
  compute_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  return {};
}

Result<std::vector<double>> ShardRunner::losses_at(int64_t sub_step) {
  const ShardRange mine = update_->shards();
  std::vector<double> losses;
  for (int shard = mine.begin; shard < mine.end; ++shard) {
    const Rows rows = rows_of(shard, sub_step);
    losses.push_back(0);
    if (!s_.feeds->empty() && rows.rows == 0) continue;
    CFT_ASSIGN(Plan * plan, s_.plans->at(rows.rows));
    for (const Feed& feed : *s_.feeds) CFT_TRY(fill_plan(*plan, feed, shard, sub_step));
    CFT_TRY(plan->run_forward(
        *s_.pool,
        {.seed = s_.seed, .shard = shard, .sub_step = sub_step, .first_sample = rows.first}));
    losses.back() = value_share(rows) * double(plan->loss());
  }
  return losses;
}

ShardRunner::Rows ShardRunner::rows_of(int shard, int64_t sub_step) const {
  if (s_.feeds->empty()) return {};
  const Source& source = *s_.feeds->front().source;
  const ShardRange group = update_->step_group(shard);
  Rows r{.rows = source.rows(shard, sub_step)};
  for (int s = 0; s < s_.shards; ++s) {
    const int64_t n = source.rows(s, sub_step);
    if (s < shard) r.first += n;
    if (s >= group.begin && s < group.end) r.together += n;
    r.total += n;
  }
  return r;
}

float ShardRunner::step_share(int shard, const Rows& rows) const {
  if (rows.together > 0) return float(rows.rows) / float(rows.together);
  return 1.f / float(update_->step_group(shard).size());
}

double ShardRunner::value_share(const Rows& rows) const {
  if (!s_.joint_values) return 1;
  return rows.total > 0 ? double(float(rows.rows) / float(rows.total))
                        : double(1.f / float(s_.shards));
}

double ShardRunner::wait_seconds() const {
  double sum = waited_before_;
  for (const auto& prefetch : prefetch_) sum += prefetch->wait_seconds();
  return sum;
}

double ShardRunner::epochs_at(int64_t sub_step) const {
  const int64_t batches = s_.feeds->empty() ? 0 : s_.feeds->front().source->batches_per_epoch();
  return batches > 0 ? double(sub_step) / double(batches) : 0;
}

}  // namespace cafetiere
