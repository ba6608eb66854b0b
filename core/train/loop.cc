// SPDX-License-Identifier: Apache-2.0
#include "core/train/loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/data/own_shard.h"
#include "core/observe/trace.h"
#include "core/solver/clip.h"
#include "core/sync/weight_check.h"
#include "core/train/solver_log.h"

namespace cafetiere {

namespace {

/// Whether an iteration in [begin, end) is a multiple of `interval`.
bool holds_multiple(int begin, int end, int interval) {
  return interval > 0 && (end + interval - 1) / interval > (begin + interval - 1) / interval;
}

}  // namespace

Status Trainer::begin(Loop& loop) {
  const int ranks = size_of(loop.group);
  loop.shards = options_.survivors ? ranks : options_.shards;
  if (ranks > loop.shards) {
    return invalid_argument(
        fmt::format("{} ranks for {} shards: a rank would have nothing to do; "
                    "use at most {} ranks or more shards",
                    ranks, loop.shards, loop.shards));
  }
  const caffe::SolverParameter& p = options_.solver.param;
  CFT_ASSIGN(loop.policy, LrPolicy::create(p));
  const auto update = [this] {
    return ArenaUpdate::make(options_.solver.param, param_spans(graph_), graph_.learned_size());
  };
  CFT_ASSIGN(const ArenaUpdate rule, update());
  loop.history_per_param = rule.history_per_param();
  CFT_ASSIGN(loop.sync, make_sync(p.sync(),
                                  {.group = loop.group,
                                   .shards = loop.shards,
                                   .floats = graph_.arena_size(),
                                   .clip = p.clip_gradients(),
                                   .pool = pool_.get(),
                                   .log = options_.log,
                                   .trace = options_.trace,
                                   .seed = seed_,
                                   .matrices = param_matrices(graph_)},
                                  update));
  if (restored_) CFT_TRY(loop.sync->restore(*std::exchange(restored_, std::nullopt)));
  if (options_.survivors) CFT_TRY(meet_members(loop));
  loop.passes = p.iter_size();
  loop.first_iter = iter_;
  loop.values.resize(size_t(loop.sync->shards().size()));
  CFT_ASSIGN(const Plan* plan, plans_->at(0));
  for (const Plan::Blob& out : plan->outputs()) loop.output_count += size_t(out.shape.count());
  loop.start = loop.last_report = Loop::Clock::now();
  return {};
}

Status Trainer::run(Group* group, const std::vector<Feed>& train,
                    const std::vector<TestFeed>& tests) {
  Loop loop;
  loop.group = group;
  loop.train = &train;
  loop.tests = &tests;
  if (group) {
    for (const auto& memory : exchanged_) group->lend(memory);
  }
  Status status = begin(loop);
  while (status.ok() && !stops(loop) && iter_ < options_.solver.param.max_iter()) {
    status = cancelled_ ? Status(ErrorCode::kCancelled, "the run was cancelled") : one_round(loop);
  }
  if (status.ok()) status = finish(loop);
  if (!status.ok() && group) group->cancel();  // no peer waits for one that has failed
  if (!status.ok() && options_.survivors && loop.sync) keep_round(loop);
  return status;
}

/// Takes iteration and weights from the member that is furthest, the first of those.
Status Trainer::meet_members(Loop& loop) {
  struct Place {
    int32_t iter, current_step;
  };
  const Place mine{iter_, current_step_};
  std::vector<Place> all(static_cast<size_t>(size_of(loop.group)));
  CFT_TRY(all_gather(loop.group, std::as_bytes(std::span(&mine, 1)),
                     std::as_writable_bytes(std::span(all))));
  const auto first = std::ranges::max_element(all, {}, &Place::iter);
  iter_ = first->iter;
  current_step_ = first->current_step;
  CFT_TRY(broadcast(loop.group, int(first - all.begin()), std::as_writable_bytes(weights_span())));
  round_weights_.assign(weights().begin(), weights().end());
  return {};
}

/// Goes back to the end of the last round, for the next group; the history stays this rank's own.
void Trainer::keep_round(Loop& loop) {
  if (round_weights_.empty()) return;
  std::ranges::copy(round_weights_, weights_.get());
  restored_ = loop.sync->own_state();
}

/// Once the ranks have met at the end, the weights stay what they are.
Status Trainer::settle(Loop& loop, bool end) {
  if (loop.ended) return {};
  loop.ended = end;
  return loop.sync->settle(end, weights_span());
}

bool Trainer::stops(const Loop& loop) const {
  return loop.meets() ? loop.asked.stop : stop_.load();
}

bool Trainer::snapshot_due(Loop& loop) {
  return loop.meets() ? std::exchange(loop.asked.snapshot, false) : snapshot_now_.exchange(false);
}

Status Trainer::one_round(Loop& loop) {
  const caffe::SolverParameter& p = options_.solver.param;
  const int before = iter_ - std::max(loop.round_length, 1) + 1;
  if (holds_multiple(std::max(before, 0), iter_ + 1, p.test_interval()) &&
      (iter_ > 0 || p.test_initialization())) {
    CFT_TRY(test_all(loop));
    if (stops(loop)) return {};
  }
  // A mode may not talk to the group for long, or have nobody to talk to, when it is broken off.
  if (options_.survivors && loop.group) CFT_TRY(loop.group->exchange({}, {}));
  const int length = std::min(loop.sync->round_length(iter_), p.max_iter() - iter_);
  if (length != loop.round_length) loop.prefetch_from(iter_, length, p.max_iter());
  const std::vector<UpdateStep> steps = steps_of_round(loop, length);
  const ShardRange mine = loop.sync->shards();
  if (p.snapshot_diff()) loop.weights_before.assign(weights().begin(), weights().end());
  for (int shard = mine.begin; shard < mine.end; ++shard) {
    loop.sync->begin_shard(shard, weights_span());
    for (const UpdateStep& step : steps) CFT_TRY(iteration(loop, shard, step));
    CFT_TRY(loop.sync->end_shard(shard, weights_span()));
  }
  CFT_TRY(end_round(loop, steps.back()));
  const int first = iter_;
  iter_ += length;
  if (options_.survivors) round_weights_.assign(weights().begin(), weights().end());
  const bool shown = holds_multiple(first, iter_, p.display());
  if (shown || (p.display() <= 0 && loop.steps_pending >= loop.report_every)) {
    CFT_TRY(report(loop, iter_ - 1, shown));
  }
  if (loop.sync->in_step() && holds_multiple(first + 1, iter_ + 1, p.sync().check_interval())) {
    CFT_TRY(compare_weights(loop.group, weights(), iter_));
  }
  const int64_t every = options_.checkpoint_every > 0 ? options_.checkpoint_every : p.snapshot();
  if (holds_multiple(first + 1, iter_ + 1, int(every)) || snapshot_due(loop)) {
    CFT_TRY(take_checkpoint(loop));
  }
  return {};
}

/// What the solver's update depends on, for each iteration of a round.
std::vector<UpdateStep> Trainer::steps_of_round(Loop& loop, int length) {
  const caffe::SolverParameter& p = options_.solver.param;
  std::vector<UpdateStep> steps;
  for (int iter = iter_; iter < iter_ + length; ++iter) {
    steps.push_back({.iter = iter,
                     .rate = rate_at(*loop.policy, p, iter, &current_step_, options_.log),
                     .gradient_scale = 1.f / float(loop.passes),
                     .passes = loop.passes});
  }
  return steps;
}

/// One iteration of one shard: its passes, and what the mode does with the gradient.
Status Trainer::iteration(Loop& loop, int shard, const UpdateStep& step) {
  Loop::ShardValues& values = loop.values[size_t(shard - loop.sync->shards().begin)];
  values.losses.push_back(0);
  values.outputs.assign(loop.output_count, 0);
  values.loss = 0;
  values.rows = 0;
  for (int i = 0; i < loop.passes; ++i) CFT_TRY(pass(loop, shard, step.iter, i));
  // A shard on its own that has no rows left in this epoch sits the step out.
  if (values.rows == 0 && !loop.train->empty() && loop.sync->partners(shard).size() == 1 &&
      loop.shards > 1) {
    return {};
  }
  const std::span<float> gradient(gradients_.get(), size_t(graph_.arena_size()));
  return loop.sync->gradient(step, values.loss, gradient, weights_span());
}

/// The exchange and, where all shards step together, the solver's step.
Status Trainer::end_round(Loop& loop, const UpdateStep& last) {
  const std::span<float> gradient(gradients_.get(), size_t(graph_.arena_size()));
  const auto before = Loop::Clock::now();
  CFT_TRY(loop.sync->end_round(last, gradient, weights_span()));
  loop.sync_seconds += Loop::seconds(before);
  log_clipping(loop.sync->last_clipping(), options_.solver.param, options_.log);
  loop.steps_pending += last.iter - iter_ + 1;
  loop.last_rate = last.rate;
  return {};
}

Status Trainer::pass(Loop& loop, int shard, int iter, int index) {
  Loop::ShardValues& values = loop.values[size_t(shard - loop.sync->shards().begin)];
  const int64_t sub_step = int64_t(iter) * loop.passes + index;
  std::vector<Prefetch::Batch> batches;
  for (auto& prefetch : loop.prefetch) {
    CFT_ASSIGN(batches.emplace_back(), prefetch->next());
  }
  const Loop::Rows rows = loop.rows_of(shard, sub_step, loop.shards);
  CFT_ASSIGN(Plan * plan, plans_->at(batches.empty() ? 0 : rows.rows));
  loop.count_rows(sub_step, rows.rows);
  values.rows += rows.rows;
  if (!batches.empty() && rows.rows == 0) {  // an empty shard: no gradient and no statistics
    if (index == 0) std::fill_n(gradients_.get(), graph_.arena_size(), 0.f);
    return {};
  }
  for (size_t i = 0; i < batches.size(); ++i) {
    feed_plan(*plan, (*loop.train)[i].layer, batches[i].tops);
  }
  const int display = options_.solver.param.display();
  const bool shown = display > 0 && iter % display == 0 && shard == 0 && index == 0;
  if (shown && options_.solver.param.debug_info()) CFT_TRY(log_debug_info(*plan));
  const Trace::Span span(options_.trace, "step", "shard {}, step {}", shard, iter);
  const auto before = Loop::Clock::now();
  const RunContext context{.seed = seed_,
                           .shard = shard,
                           .sub_step = sub_step,
                           .first_sample = rows.first,
                           .loss_scale = rows.step_share(loop.sync->partners(shard).size()),
                           .accumulate = index > 0};
  if (index + 1 == loop.passes && shard + 1 == loop.sync->shards().end) {
    const std::span<float> gradient(gradients_.get(), size_t(graph_.arena_size()));
    CFT_TRY(plan->run(*pool_, context, [&](const float* from) {
      loop.sync->final_from(gradient, size_t(from - gradient.data()));
    }));
  } else {
    CFT_TRY(plan->run(*pool_, context));
  }
  loop.compute_seconds += Loop::seconds(before);
  const double share = loop.sync->meets() ? rows.loss_share(loop.shards) : 1;
  const double weight = share / loop.passes;
  values.loss += double(plan->loss()) / loop.passes;
  values.losses.back() += weight * double(plan->loss());
  size_t at = 0;
  for (const Plan::Blob& output : plan->outputs()) {
    for (int64_t i = 0; i < output.shape.count() && at < values.outputs.size(); ++i) {
      values.outputs[at++] += weight * double(output.data[i]);
    }
  }
  return {};
}

Status Trainer::log_debug_info(const Plan& plan) {
  if (!debug_info_) {
    CFT_ASSIGN(const NetChoice choice, training_choice());
    CFT_ASSIGN(Graph graph, training_graph(choice));
    CFT_ASSIGN(debug_info_, DebugInfo::create(std::move(graph), {options_.threads, seed_}));
  }
  return debug_info_->log_pass(plan, weights(), options_.log);
}

namespace {

/// A test on the rows of rank 0 alone; `own` holds its sources.
TestFeed own_part(const TestFeed& feed, std::vector<OwnShard>& own) {
  TestFeed part = feed;
  own.reserve(part.feeds.size());
  for (Feed& f : part.feeds) f.source = &own.emplace_back(f.source);
  return part;
}

}  // namespace

Status Trainer::test_all(Loop& loop) {
  const bool apart = !loop.sync->meets();
  if (apart && rank_of(loop.group) != 0) return {};
  CFT_TRY(settle(loop, false));
  // Counted from the iteration, so that a resumed run tests on the same batches.
  const caffe::SolverParameter& p = options_.solver.param;
  const int64_t index = iter_ / p.test_interval() - (p.test_initialization() ? 0 : 1);
  const auto go_on = [&]() -> Result<bool> {
    if (snapshot_due(loop)) CFT_TRY(take_checkpoint(loop));
    return !stops(loop);
  };
  for (size_t i = 0; i < testers_.size() && i < loop.tests->size() && !stops(loop); ++i) {
    options_.log.info("Iteration {}, Testing net (#{})", iter_, i);
    const TestFeed& feed = (*loop.tests)[i];
    std::vector<OwnShard> own;
    CFT_ASSIGN(const TestScores scores,
               testers_[i]->run({.group = apart ? nullptr : loop.group,
                                 .shards = apart ? 1 : loop.shards,
                                 .seed = seed_,
                                 .go_on = loop.group ? nullptr : TestRun::GoOn(go_on)},
                                apart ? own_part(feed, own) : feed, index, *pool_));
    if (scores.interrupted) {
      options_.log.info("Test interrupted.");
      return {};
    }
    if (p.test_compute_loss()) options_.log.info("Test loss: {:g}", scores.loss);
    TestResult event{iter_, testers_[i]->graph().name(), {}};
    for (size_t o = 0; o < scores.outputs.size(); ++o) {
      const TestOutput& out = scores.outputs[o];
      options_.log.info("    Test net output #{}: {} = {:g}{}", o, out.blob, out.mean,
                        loss_note(out.loss_weight, out.mean));
      event.outputs.emplace_back(out.blob, out.mean);
    }
    if (options_.events) options_.events->test(event);
  }
  return {};
}

Status Trainer::finish(Loop& loop) {
  const caffe::SolverParameter& p = options_.solver.param;
  if (loop.steps_pending > 0) {
    CFT_TRY(report(loop, iter_ - 1, p.display() > 0 && (iter_ - 1) % p.display() == 0));
  }
  CFT_TRY(settle(loop, true));
  if (p.snapshot_after_train() && loop.checkpoint_iter != iter_) CFT_TRY(take_checkpoint(loop));
  loop.prefetch.clear();  // the sources are ours again
  const bool stopped = stops(loop);
  if (!stopped && p.display() > 0 && iter_ % p.display() == 0) CFT_TRY(log_final_loss(loop));
  if (!stopped && p.test_interval() > 0 && iter_ % p.test_interval() == 0) CFT_TRY(test_all(loop));
  options_.log.info("{}", stopped ? "Optimization stopped early." : "Optimization Done.");
  summary_.steps = iter_;
  summary_.seconds = Loop::seconds(loop.start);
  CFT_ASSIGN(summary_.rows_per_epoch, loop.all_rows());
  int64_t rows = 0;
  for (int64_t r : summary_.rows_per_epoch) rows += r;
  summary_.rows_per_s = summary_.seconds > 0 ? double(rows) / summary_.seconds : 0;
  summary_.not_compute = 1 - (loop.compute_seconds + loop.sync_seconds) / summary_.seconds;
  summary_.loss = loop.last_loss;
  const int64_t floats = graph_.arena_size() * int64_t(2 + loop.history_per_param);
  summary_.peak_bytes = plans_->bytes() + floats * int64_t(sizeof(float));
  return {};
}

/// The loss of the finished weights on the batch that would have come next.
Status Trainer::log_final_loss(Loop& loop) {
  if (!loop.sync->meets()) return {};
  const int64_t sub_step = int64_t(iter_) * loop.passes;
  const ShardRange mine = loop.sync->shards();
  std::vector<double> losses;
  for (int shard = mine.begin; shard < mine.end; ++shard) {
    const Loop::Rows rows = loop.rows_of(shard, sub_step, loop.shards);
    losses.push_back(0);
    if (!loop.train->empty() && rows.rows == 0) continue;
    CFT_ASSIGN(Plan * plan, plans_->at(rows.rows));
    for (const Feed& feed : *loop.train) CFT_TRY(fill_plan(*plan, feed, shard, sub_step));
    CFT_TRY(plan->run_forward(
        *pool_, {.seed = seed_, .shard = shard, .sub_step = sub_step, .first_sample = rows.first}));
    losses.back() = rows.loss_share(loop.shards) * double(plan->loss());
  }
  std::vector<double> all(static_cast<size_t>(loop.shards));
  CFT_TRY(gather_shard_values(loop.group, loop.shards, losses, 1, all));
  const double loss = loop.smoothed(tree_sum(all), options_.solver.param.average_loss());
  options_.log.info("Iteration {}, loss = {:g}", iter_, loss);
  return {};
}

}  // namespace cafetiere
