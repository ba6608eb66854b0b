// SPDX-License-Identifier: Apache-2.0
#include "core/train/loop.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/thread_stacks.h"
#include "core/data/own_shard.h"
#include "core/solver/clip.h"
#include "core/sync/weight_check.h"
#include "core/train/immediate_update.h"
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
        fmt::format("{} ranks for {} shards: some ranks would have no shard; use at most {} ranks, "
                    "or more shards",
                    ranks, loop.shards, loop.shards));
  }
  CFT_TRY(check_posteriors(posteriors_, *loop.train));
  CFT_TRY(agree_on_precision(loop.group));
  const caffe::SolverParameter& p = options_.solver.param;
  CFT_ASSIGN(loop.policy, LrPolicy::create(p));
  CFT_ASSIGN(ImmediateUpdate* const immediate, make_mode(loop));
  const bool has_history = restored_ != nullptr;
  if (const auto state = std::exchange(restored_, nullptr)) CFT_TRY(loop.sync->restore(*state));
  if (options_.survivors) {
    CFT_TRY(elect_source(loop));
    NoHistory joined(size_t(loop.history_per_param), iter_);
    if (!has_history) CFT_TRY(loop.sync->restore(joined));
  }
  ShardRunner::Setup setup{.solver = &options_.solver.param,
                           .plans = plans_.get(),
                           .immediate = immediate,
                           .pool = pool_.get(),
                           .weights = weights_span(),
                           .gradients = gradients_span(),
                           .seed = seed_,
                           .shards = loop.shards,
                           .joint_values = loop.sync->is_synchronous(),
                           .feeds = loop.train,
                           .prefetch_threads = options_.prefetch_threads,
                           .cancelled = &cancelled_,
                           .trace = options_.trace,
                           .account = &options_.time};
  if (p.debug_info()) {
    setup.before_shown = [this](const Plan& plan) { return log_debug_info(plan); };
  }
  CFT_ASSIGN(loop.runner, ShardRunner::create(std::move(setup), loop.sync.get()));
  if (!options_.survivors) rows_used_.clear();
  loop.first_iter = iter_;
  loop.start = loop.last_report = loop.last_heard = Loop::Clock::now();
  return {};
}

/// Sets the mode; returns it if the plans update the parameters, else null.
Result<ImmediateUpdate*> Trainer::make_mode(Loop& loop) {
  const caffe::SolverParameter& p = options_.solver.param;
  const auto update = [this] {
    return ArenaUpdate::make(options_.solver.param, param_spans(graph_), graph_.learned_size());
  };
  CFT_ASSIGN(ArenaUpdate rule, update());
  loop.history_per_param = rule.history_per_param();
  if (immediate_) {
    auto mode = std::make_unique<ImmediateUpdate>(loop.group, std::move(rule), graph_.arena_size());
    ImmediateUpdate* const immediate = mode.get();
    loop.sync = std::move(mode);
    return immediate;
  }
  CFT_ASSIGN(loop.sync, make_sync(p.sync(),
                                  {.group = loop.group,
                                   .shards = loop.shards,
                                   .floats = graph_.arena_size(),
                                   .clip = p.clip_gradients(),
                                   .pool = pool_.get(),
                                   .log = options_.log,
                                   .trace = options_.trace,
                                   .account = &options_.time,
                                   .seed = seed_,
                                   .matrices = param_matrices(graph_)},
                                  update));
  return nullptr;
}

Status Trainer::run(Group* group, const std::vector<Feed>& train,
                    const std::vector<TestFeed>& tests) {
  Loop loop;
  loop.group = group;
  loop.train = &train;
  loop.tests = &tests;
  options_.time.change(Activity::kStarting);
  place_thread_ = this_thread();
  if (group) {
    for (const auto& memory : shared_arenas_) group->lend(memory);
  }
  Status status = begin(loop);
  while (status.ok() && !stops(loop) && iter_ < options_.solver.param.max_iter()) {
    status = one_round(loop);
  }
  if (status.ok()) status = finish(loop);
  if (loop.last_progress) {
    options_.events->progress(*loop.last_progress);
    if (status.ok()) status = check_cancelled();
  }
  options_.time.change(status.ok() ? Activity::kStoring : Activity::kStarting);
  place_thread_ = 0;
  if (!status.ok() && group) group->cancel();  // peers must not wait for a rank that has failed
  if (!status.ok() && options_.survivors && loop.sync) save_rollback_round(loop);
  return status;
}

/// Adopts iteration and weights of the most advanced rank; the lowest rank wins ties.
Status Trainer::elect_source(Loop& loop) {
  note_round();
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
  note_round();
  return {};
}

/// Saves the state at the end of the last round, for save_rollback_round().
void Trainer::note_round() {
  last_round_.iter = iter_;
  last_round_.current_step = current_step_;
  last_round_.weights.assign(weights().begin(), weights().end());
}

/// Returns to the end of the last round, for the next group; this rank keeps its own history.
void Trainer::save_rollback_round(Loop& loop) {
  if (last_round_.weights.empty()) return;  // the run failed before note_round()
  iter_ = last_round_.iter;
  current_step_ = last_round_.current_step;
  std::ranges::copy(last_round_.weights, weights_.get());
  restored_ = loop.sync->own_state();
}

/// After the final consolidation the weights do not change any more.
Status Trainer::consolidate(Loop& loop, bool end) {
  if (loop.ended) return {};
  const TimeAccount::Span time(&options_.time, loop.exchanging());
  loop.ended = end;
  return loop.sync->consolidate(end, weights_span());
}

bool Trainer::stops(const Loop& loop) const {
  if (stopping_ && stopping_->has_stopped()) return true;
  return loop.is_synchronous() ? loop.asked.stop : stop_.load();
}

bool Trainer::snapshot_due(Loop& loop) {
  return loop.is_synchronous() ? std::exchange(loop.asked.snapshot, false)
                               : snapshot_now_.exchange(false);
}

bool Trainer::test_due(const Loop& loop) const {
  if (!loop.is_agreed()) return false;
  if (stopping_) return stopping_->is_due(iter_);
  const caffe::SolverParameter& p = options_.solver.param;
  const int before = iter_ - std::max(loop.span, 1) + 1;
  return holds_multiple(std::max(before, 0), iter_ + 1, p.test_interval()) &&
         (iter_ > 0 || p.test_initialization());
}

/// Passes a test's scores to early stopping.
Status Trainer::watch(const TestScores& scores) {
  const auto found = std::ranges::find(scores.outputs, stopping_->output(), &TestOutput::blob);
  if (found == scores.outputs.end()) {
    return invalid_argument(fmt::format(
        "early_stopping watches \"{}\", which is no output of the test net", stopping_->output()));
  }
  stopping_->observe(iter_, found->mean, weights());
  if (stopping_->has_stopped()) {
    const auto& [iter, value] = stopping_->curve()[size_t(std::max(0, stopping_->best()))];
    options_.log.info("Early stopping: the best test was that of iteration {}, {} = {:g}", iter,
                      stopping_->output(), value);
  }
  return {};
}

void Trainer::take_best() {
  if (!stopping_ || stopping_->best_weights().empty()) return;
  std::ranges::copy(stopping_->best_weights(), weights_.get());
}

Status Trainer::one_round(Loop& loop) {
  place_iter_ = iter_;
  options_.time.change(Activity::kComputing);
  const caffe::SolverParameter& p = options_.solver.param;
  if (test_due(loop)) {
    CFT_TRY(test_all(loop));
    if (stops(loop)) return {};
  }
  // The mode itself may take long to notice that the group was cancelled.
  if (options_.survivors && loop.group) {
    const TimeAccount::Span time(&options_.time, Activity::kNetwork);
    CFT_TRY(loop.group->exchange({}, {}));
  }
  const bool was_agreed = loop.is_agreed();
  const int length = std::min(loop.sync->round_length(iter_), p.max_iter() - iter_);
  const std::vector<UpdateStep> steps =
      update_steps(*loop.policy, p, iter_, length, &current_step_, options_.log);
  if (p.snapshot_diff()) loop.weights_before.assign(weights().begin(), weights().end());
  CFT_TRY(loop.runner->round(steps));
  CFT_TRY(end_round(loop, steps.back()));
  count_rows(loop);
  const int first = iter_;
  iter_ += length;
  loop.span = was_agreed ? length : loop.span + length;
  place_iter_ = iter_;
  if (options_.survivors) note_round();
  loop.steps_unheard += length;
  const bool shown = holds_multiple(first, iter_, p.display());
  if (shown || (p.display() <= 0 && loop.steps_pending >= loop.report_every)) {
    CFT_TRY(report(loop, iter_ - 1, shown));
  } else if (loop.steps_unheard >= loop.report_every) {
    CFT_TRY(hear_requests(loop));
  }
  if (loop.sync->replicas_equal() &&
      holds_multiple(first + 1, iter_ + 1, p.sync().check_interval())) {
    const TimeAccount::Span time(&options_.time, loop.exchanging());
    CFT_TRY(compare_weights(loop.group, weights(), iter_));
  }
  return checkpoint_if_due(loop);
}

Status Trainer::checkpoint_if_due(Loop& loop) {
  if (!loop.is_agreed()) return {};
  const int first = iter_ - loop.span;
  const auto passed = [&](int64_t every) {
    return holds_multiple(first + 1, iter_ + 1, int(every));
  };
  const bool takes_snapshots = options_.checkpoint_every <= 0 || options_.snapshots;
  if (takes_snapshots && passed(options_.solver.param.snapshot())) {
    return take_checkpoint(loop, Asked::kSnapshot);
  }
  const bool due = passed(options_.checkpoint_every) || snapshot_due(loop);
  return due ? take_checkpoint(loop, Asked::kYes) : Status();
}

/// The exchange and, if all shards step together, the solver's step.
Status Trainer::end_round(Loop& loop, const UpdateStep& last) {
  const TimeAccount::Span time(&options_.time, loop.exchanging());
  const auto before = Loop::Clock::now();
  CFT_TRY(loop.sync->end_round(last, gradients_span(), weights_span()));
  loop.sync_seconds += Loop::seconds(before);
  log_clipping(loop.sync->last_clipping(), options_.solver.param, options_.log);
  loop.steps_pending += last.iter - iter_ + 1;
  loop.last_rate = last.rate;
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

/// A test on rank 0's rows only; `own` holds its sources.
TestFeed own_part(const TestFeed& feed, std::vector<OwnShard>& own) {
  TestFeed part = feed;
  own.reserve(part.feeds.size());
  for (Feed& f : part.feeds) f.source = &own.emplace_back(f.source);
  return part;
}

}  // namespace

Status Trainer::test_all(Loop& loop) {
  const bool apart = !loop.sync->is_synchronous();
  if (apart && !loop.sync->is_leader()) return {};
  const TimeAccount::Span time(&options_.time, Activity::kTesting);
  CFT_TRY(consolidate(loop, false));
  // Derived from the iteration, so that a resumed run tests on the same batches.
  const caffe::SolverParameter& p = options_.solver.param;
  const int64_t done = iter_ / p.test_interval() - (p.test_initialization() ? 0 : 1);
  const int64_t index = std::max<int64_t>(0, done);  // the last one may come before the first
  const auto go_on = [&]() -> Result<bool> {
    CFT_TRY(check_cancelled());
    if (loop.group) return true;  // all ranks stop together at a report
    if (snapshot_due(loop)) CFT_TRY(take_checkpoint(loop, Asked::kYes));
    return !stops(loop);
  };
  std::optional<PrecisionForm> form;
  if (*evaluates_detections(p)) form = *precision_form(p);  // both were checked
  for (size_t i = 0; i < testers_.size() && i < loop.tests->size() && !stops(loop); ++i) {
    const TestFeed& feed = (*loop.tests)[i];
    if (!feed.whole && feed.batches == 0) continue;
    options_.log.info("Iteration {}, Testing net (#{})", iter_, i);
    std::vector<OwnShard> own;
    CFT_ASSIGN(const TestScores scores,
               testers_[i]->run({.group = apart ? nullptr : loop.group,
                                 .shards = apart ? 1 : loop.shards,
                                 .seed = seed_,
                                 .detections = form,
                                 .go_on = go_on},
                                apart ? own_part(feed, own) : feed, index, *pool_));
    if (scores.interrupted) {
      options_.log.info("Test interrupted.");
      return {};
    }
    for (const auto& [label, precision] : scores.precisions) {
      if (p.show_per_class_result()) options_.log.info("    class{}: {:g}", label, precision);
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
    if (stopping_ && i == 0) CFT_TRY(watch(scores));
  }
  return check_cancelled();
}

Status Trainer::finish(Loop& loop) {
  const caffe::SolverParameter& p = options_.solver.param;
  CFT_TRY(check_cancelled());
  if (loop.steps_pending > 0) {
    CFT_TRY(report(loop, iter_ - 1, p.display() > 0 && (iter_ - 1) % p.display() == 0));
  }
  CFT_TRY(consolidate(loop, true));
  // Before the state is stored, so that it contains all tests.
  if (stopping_ && !stopping_->is_tested(iter_) && !stops(loop)) CFT_TRY(test_all(loop));
  const bool due = loop.checkpoint_iter != iter_ && p.snapshot_after_train();
  const Asked asked = due ? Asked::kYes : Asked::kNo;
  if (due || options_.keep_state) CFT_TRY(take_checkpoint(loop, asked, options_.keep_state));
  CFT_TRY(sum_rows(loop));
  loop.runner->stop_prefetch();  // no thread uses the sources after this
  const bool stopped = stops(loop);
  if (!stopped && p.display() > 0 && iter_ % p.display() == 0) CFT_TRY(log_final_loss(loop));
  const bool is_tested = stopping_ && stopping_->is_tested(iter_);
  if (!stopped && !is_tested && p.test_interval() > 0 && iter_ % p.test_interval() == 0) {
    CFT_TRY(test_all(loop));
  }
  take_best();
  if (!stopped || (stopping_ && stopping_->has_stopped())) CFT_TRY(take_posteriors(loop));
  options_.log.info("{}", stopped ? "Optimization stopped early." : "Optimization Done.");
  summary_.steps = iter_;
  summary_.seconds = Loop::seconds(loop.start);
  summary_.not_compute =
      1 - (loop.runner->compute_seconds() + loop.sync_seconds) / summary_.seconds;
  summary_.loss = loop.last_loss;
  const int64_t floats =
      graph_.arena_size() * int64_t((immediate_ ? 1 : 2) + loop.history_per_param);
  summary_.peak_bytes = plans_->bytes() + floats * int64_t(sizeof(float));
  return {};
}

/// Snapshots and the stored state, from which training can continue, have the rows as trained.
Status Trainer::take_posteriors(Loop& loop) {
  const TimeAccount::Span time(&options_.time, Activity::kComputing);
  return take_posterior_means(posteriors_, weights_span(),
                              {.group = loop.group,
                               .shards = loop.shards,
                               .feeds = loop.train,
                               .engine = {device_.get(), pool_.get(), seed_, &cancelled_},
                               .log = options_.log});
}

/// The loss of the final weights on the batch that would be next.
Status Trainer::log_final_loss(Loop& loop) {
  if (!loop.sync->is_synchronous()) return {};
  const int64_t sub_step = int64_t(iter_) * options_.solver.param.iter_size();
  CFT_ASSIGN(const std::vector<double> losses, loop.runner->losses_at(sub_step));
  std::vector<double> all(static_cast<size_t>(loop.shards));
  CFT_TRY(gather_shard_values(loop.group, loop.shards, losses, 1, all));
  const double loss = loop.smoothed(tree_sum(all), options_.solver.param.average_loss());
  options_.log.info("Iteration {}, loss = {:g}", iter_, loss);
  return {};
}

}  // namespace cafetiere
