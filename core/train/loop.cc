#include "core/train/loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/solver/clip.h"

namespace cafetiere {

Status Trainer::begin(Loop& loop) {
  const int ranks = size_of(loop.group);
  if (ranks > options_.shards) {
    return invalid_argument(
        fmt::format("{} ranks for {} shards: a rank would have nothing to do; "
                    "use at most {} ranks or more shards",
                    ranks, options_.shards, options_.shards));
  }
  const caffe::SolverParameter& p = options_.solver.param;
  CFT_ASSIGN(ArenaUpdate update, ArenaUpdate::make(p, param_spans(graph_), graph_.learned_size()));
  CFT_ASSIGN(loop.policy, LrPolicy::create(p));
  loop.history_per_param = update.history_per_param();
  loop.sync = std::make_unique<AllReduce>(loop.group, options_.shards, graph_.arena_size(),
                                          std::move(update), pool_.get());
  if (!restored_history_.empty()) loop.sync->set_history(restored_history_);
  restored_history_.clear();
  loop.passes = p.iter_size();
  loop.first_iter = iter_;
  const ShardRange mine = loop.sync->shards();
  for (const Feed& feed : *loop.train) {
    const BatchSequence sequence{{mine.begin, mine.end},
                                 int64_t(iter_) * loop.passes,
                                 int64_t(p.max_iter()) * loop.passes,
                                 loop.passes};
    loop.prefetch.push_back(std::make_unique<Prefetch>(feed.source, sequence));
  }
  loop.values.resize(size_t(mine.size()));
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
  Status status = begin(loop);
  while (status.ok() && !stop_ && iter_ < options_.solver.param.max_iter()) {
    status = cancelled_ ? Status(ErrorCode::kCancelled, "the run was cancelled") : one_step(loop);
  }
  if (status.ok()) status = finish(loop);
  if (!status.ok() && group) group->cancel();  // no peer waits for one that has failed
  return status;
}

Status Trainer::one_step(Loop& loop) {
  const caffe::SolverParameter& p = options_.solver.param;
  const int interval = p.test_interval();
  if (interval > 0 && iter_ % interval == 0 && (iter_ > 0 || p.test_initialization())) {
    CFT_TRY(test_all(loop));
    if (stop_) return {};
  }
  const std::span<float> gradient(gradients_.get(), size_t(graph_.arena_size()));
  const ShardRange mine = loop.sync->shards();
  for (int shard = mine.begin; shard < mine.end; ++shard) {
    for (int i = 0; i < loop.passes; ++i) {
      CFT_TRY(pass(loop, shard, int64_t(iter_) * loop.passes + i, i));
    }
    CFT_TRY(loop.sync->add(gradient));
  }
  CFT_TRY(update(loop, gradient));
  if (loop.report_now(iter_, p)) CFT_TRY(report(loop, iter_));
  ++iter_;
  const int64_t every = options_.checkpoint_every > 0 ? options_.checkpoint_every : p.snapshot();
  if ((every > 0 && iter_ % every == 0) || snapshot_now_.exchange(false)) {
    CFT_TRY(take_checkpoint(loop));
  }
  return {};
}

/// The exchange and the solver's step.
Status Trainer::update(Loop& loop, std::span<float> gradient) {
  const caffe::SolverParameter& p = options_.solver.param;
  const int step_before = current_step_;
  const UpdateStep step{.iter = iter_,
                        .rate = loop.policy->rate(iter_, &current_step_),
                        .gradient_scale = 1.f / float(loop.passes),
                        .passes = loop.passes};
  if (p.lr_policy() == "multistep" && current_step_ != step_before) {
    options_.log.info("MultiStep Status: Iteration {}, step = {}", iter_, current_step_);
  }
  if (p.snapshot_diff()) loop.weights_before.assign(weights().begin(), weights().end());
  const auto before = Loop::Clock::now();
  CFT_TRY(loop.sync->step(step, p.clip_gradients(), gradient,
                          {weights_.get(), size_t(graph_.arena_size())}));
  loop.sync_seconds += Loop::seconds(before);
  if (const Clipping& clipped = loop.sync->last_clipping(); clipped.factor < 1) {
    options_.log.info(
        "Gradient clipping: scaling down gradients (L2 norm {:g} > {:g}) by scale factor {:g}",
        clipped.norm, p.clip_gradients(), clipped.factor);
  }
  ++loop.steps_pending;
  loop.last_rate = step.rate;
  return {};
}

Status Trainer::pass(Loop& loop, int shard, int64_t sub_step, int index) {
  Loop::ShardValues& values = loop.values[size_t(shard - loop.sync->shards().begin)];
  if (index == 0) {
    values.losses.push_back(0);
    values.outputs.assign(loop.output_count, 0);
  }
  std::vector<Prefetch::Batch> batches;
  for (auto& prefetch : loop.prefetch) {
    CFT_ASSIGN(batches.emplace_back(), prefetch->next());
  }
  const auto [rows, first, total] = loop.rows_of(shard, sub_step, options_.shards);
  CFT_ASSIGN(Plan * plan, plans_->at(batches.empty() ? 0 : std::max<int64_t>(rows, 0)));
  loop.count_rows(sub_step, rows);
  if (!batches.empty() && rows == 0) {  // an empty shard: no gradient and no statistics
    if (index == 0) std::fill_n(gradients_.get(), graph_.arena_size(), 0.f);
    return {};
  }
  for (size_t i = 0; i < batches.size(); ++i) {
    feed_plan(*plan, (*loop.train)[i].layer, batches[i].tops);
  }
  const int display = options_.solver.param.display();
  const bool shown = display > 0 && iter_ % display == 0 && shard == 0 && index == 0;
  if (shown && options_.solver.param.debug_info()) CFT_TRY(log_debug_info(*plan));
  const float share = batches.empty() ? 1.f / float(options_.shards) : float(rows) / float(total);
  const auto before = Loop::Clock::now();
  plan->run(*pool_, {.seed = seed_,
                     .sub_step = sub_step,
                     .first_sample = first,
                     .loss_scale = share,
                     .accumulate = index > 0});
  loop.compute_seconds += Loop::seconds(before);
  const double weight = double(share) / loop.passes;
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

Status Trainer::test_all(Loop& loop) {
  // Counted from the iteration, so that a resumed run tests on the same batches.
  const caffe::SolverParameter& p = options_.solver.param;
  const int64_t index = iter_ / p.test_interval() - (p.test_initialization() ? 0 : 1);
  const auto go_on = [&]() -> Result<bool> {
    if (snapshot_now_.exchange(false)) CFT_TRY(take_checkpoint(loop));
    return !stop_;
  };
  for (size_t i = 0; i < testers_.size() && i < loop.tests->size() && !stop_; ++i) {
    options_.log.info("Iteration {}, Testing net (#{})", iter_, i);
    CFT_ASSIGN(const TestScores scores,
               testers_[i]->run({.group = loop.group,
                                 .shards = options_.shards,
                                 .seed = seed_,
                                 .go_on = loop.group ? nullptr : TestRun::GoOn(go_on)},
                                (*loop.tests)[i], index, *pool_));
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
  if (loop.steps_pending > 0) CFT_TRY(report(loop, iter_ - 1));
  if (p.snapshot_after_train() && loop.checkpoint_iter != iter_) CFT_TRY(take_checkpoint(loop));
  loop.prefetch.clear();  // the sources are ours again
  if (!stop_ && p.display() > 0 && iter_ % p.display() == 0) CFT_TRY(log_final_loss(loop));
  if (!stop_ && p.test_interval() > 0 && iter_ % p.test_interval() == 0) CFT_TRY(test_all(loop));
  options_.log.info("{}", stop_ ? "Optimization stopped early." : "Optimization Done.");
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
  const int64_t sub_step = int64_t(iter_) * loop.passes;
  const ShardRange mine = loop.sync->shards();
  std::vector<double> losses;
  for (int shard = mine.begin; shard < mine.end; ++shard) {
    const auto [rows, first, total] = loop.rows_of(shard, sub_step, options_.shards);
    losses.push_back(0);
    if (!loop.train->empty() && rows == 0) continue;
    CFT_ASSIGN(Plan * plan, plans_->at(std::max<int64_t>(rows, 0)));
    for (const Feed& feed : *loop.train) CFT_TRY(fill_plan(*plan, feed, shard, sub_step));
    plan->run_forward(*pool_, {.seed = seed_, .sub_step = sub_step, .first_sample = first});
    const double share = loop.train->empty() ? 1. / options_.shards : double(rows) / double(total);
    losses.back() = share * double(plan->loss());
  }
  std::vector<double> all(static_cast<size_t>(options_.shards));
  CFT_TRY(gather_shard_values(loop.group, options_.shards, losses, 1, all));
  const double loss = loop.smoothed(tree_sum(all), options_.solver.param.average_loss());
  options_.log.info("Iteration {}, loss = {:g}", iter_, loss);
  return {};
}

}  // namespace cafetiere
