#include "core/train/trainer.h"

#include <fmt/format.h>

#include <random>

#include "core/comm/collectives.h"
#include "core/graph/arena.h"
#include "core/layers/registry.h"
#include "core/model/weights.h"
#include "core/plan/memory.h"
#include "core/train/loop.h"
#include "core/train/nets.h"

namespace cafetiere {
namespace {

std::unique_ptr<float, std::function<void(float*)>> make_arena(int64_t floats) {
  return {allocate_arena(floats), [floats](float* p) { free_arena(p, floats); }};
}

Status check_solver(const caffe::SolverParameter& p) {
  if (p.iter_size() < 1) return invalid_argument("iter_size must be at least 1");
  if (p.average_loss() < 1) return invalid_argument("average_loss must be at least 1");
  if (p.test_interval() < 0) return invalid_argument("test_interval must not be negative");
  return {};
}

}  // namespace

Trainer::Trainer(TrainerOptions options) : options_(std::move(options)) {}

Result<std::unique_ptr<Trainer>> Trainer::create(TrainerOptions options) {
  std::unique_ptr<Trainer> trainer(new Trainer(std::move(options)));
  CFT_TRY(trainer->build());
  return trainer;
}

Status Trainer::build() {
  const caffe::SolverParameter& p = options_.solver.param;
  CFT_TRY(check_solver(p).with_context(options_.solver.source));
  if (options_.shards < 1) return invalid_argument("shards must be at least 1");
  if (options_.threads < 1) return invalid_argument("threads must be at least 1");
  seed_ = p.random_seed() >= 0 ? uint64_t(p.random_seed()) : options_.seed;
  if (options_.max_iter > 0) options_.solver.param.set_max_iter(int(options_.max_iter));
  device_ = options_.device == "ref" ? make_ref_device() : make_cpu_device();
  pool_ = std::make_unique<ThreadPool>(options_.threads);

  const NetText* given = options_.has_net ? &options_.net : nullptr;
  CFT_ASSIGN(const NetChoice choice, training_net(options_.solver, given));
  CFT_ASSIGN(graph_, Graph::build(choice.net, choice.state,
                                  {.types = layer_types(), .fed = options_.train_shapes}));
  weights_ = make_arena(graph_.arena_size());
  gradients_ = make_arena(graph_.arena_size());
  if (!weights_ || !gradients_) {
    return {ErrorCode::kOutOfMemory,
            fmt::format("cannot allocate two arenas of {} floats", graph_.arena_size())};
  }
  Random random{uint32_t(seed_)};
  const std::span<float> arena(weights_.get(), size_t(graph_.arena_size()));
  CFT_TRY(init_params(graph_, random, arena));
  plans_ = std::make_unique<PlanSet>(
      &graph_, device_.get(), param_pointers(graph_, weights_.get(), gradients_.get()), true);
  CFT_TRY(plans_->at(0).status());  // an impossible plan is told now, not in the first step

  if (p.test_interval() == 0) return {};
  CFT_ASSIGN(const std::vector<NetChoice> tests, test_nets(options_.solver, given));
  for (const NetChoice& test : tests) {
    const size_t i = test_graphs_.size();
    const auto& shapes = options_.test_shapes;
    CFT_ASSIGN(Graph graph,
               Graph::build(test.net, test.state,
                            {.types = layer_types(),
                             .fed = i < shapes.size() ? shapes[i] : TrainerOptions::FedShapes()}));
    test_graphs_.push_back(std::move(graph));
  }
  for (const Graph& graph : test_graphs_) {
    ParamPointers pointers;
    CFT_ASSIGN(pointers.data, shared_params(graph, graph_, weights_.get()));
    pointers.diff.assign(pointers.data.size(), nullptr);
    testers_.push_back(std::make_unique<Tester>(&graph, device_.get(), std::move(pointers)));
  }
  return {};
}

Status Trainer::restore(const caffe::NetParameter* weights, const SolverState* state) {
  if (weights) {
    std::vector<std::string> ignored;
    const std::span<float> arena(weights_.get(), size_t(graph_.arena_size()));
    CFT_TRY(load_weights(graph_, *weights, arena, &ignored));
    for (const std::string& name : ignored) options_.log.info("Ignoring source layer {}", name);
  }
  if (!state) return {};
  CFT_ASSIGN(const auto rule, make_update_rule(options_.solver.param));
  CFT_ASSIGN(full_history_,
             history_arenas(graph_, state->history, size_t(rule->history_per_param())));
  iter_ = state->iter;
  current_step_ = state->current_step;
  return {};
}

std::string Trainer::model_bytes() const {
  const Result<std::string> bytes =
      serialize_weights(to_weights(graph_, weights()), ModelFormat::kBinary);
  return bytes.ok() ? *bytes : std::string();
}

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
  loop.sync = std::make_unique<AllReduce>(loop.group, options_.shards, graph_.arena_size(),
                                          std::move(update), pool_.get());
  if (!full_history_.empty()) loop.sync->set_history(full_history_);
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
  loop.pending.resize(size_t(mine.size()));
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
  while (status.ok() && iter_ < options_.solver.param.max_iter()) {
    if (cancelled_)
      status = {ErrorCode::kCancelled, "the run was cancelled"};
    else
      status = one_step(loop);
    if (stop_) break;
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
  }
  const ShardRange mine = loop.sync->shards();
  for (int shard = mine.begin; shard < mine.end; ++shard) {
    CFT_TRY(shard_gradient(loop, shard));
    const std::span<const float> gradient(gradients_.get(), size_t(graph_.arena_size()));
    CFT_TRY(loop.sync->add(gradient));
  }
  const float rate = loop.policy->rate(iter_, &current_step_);
  const UpdateStep step{iter_, rate, 1.f / float(loop.passes), loop.passes};
  const auto before = Loop::Clock::now();
  CFT_TRY(loop.sync->step(step, p.clip_gradients(), {gradients_.get(), size_t(graph_.arena_size())},
                          {weights_.get(), size_t(graph_.arena_size())}));
  loop.sync_seconds += Loop::seconds(before);
  ++loop.steps_pending;
  loop.last_rate = rate;
  if (loop.report_now(iter_, p)) CFT_TRY(report(loop, iter_));
  ++iter_;
  const int64_t every = options_.checkpoint_every > 0 ? options_.checkpoint_every : p.snapshot();
  if ((every > 0 && iter_ % every == 0) || snapshot_now_.exchange(false)) {
    CFT_TRY(take_checkpoint(loop));
  }
  return {};
}

Status Trainer::shard_gradient(Loop& loop, int shard) {
  const ShardRange mine = loop.sync->shards();
  std::vector<double>& values = loop.pending[size_t(shard - mine.begin)];
  loop.values_begin = values.size();
  for (int i = 0; i < loop.passes; ++i) {
    CFT_TRY(pass(loop, shard, int64_t(iter_) * loop.passes + i, i));
  }
  return {};
}

Status Trainer::pass(Loop& loop, int shard, int64_t sub_step, int index) {
  const ShardRange mine = loop.sync->shards();
  std::vector<double>& values = loop.pending[size_t(shard - mine.begin)];
  std::vector<Prefetch::Batch> batches;
  for (auto& prefetch : loop.prefetch) {
    CFT_ASSIGN(batches.emplace_back(), prefetch->next());
  }
  const auto [rows, first, total] = loop.rows_of(shard, sub_step, options_.shards);
  CFT_ASSIGN(Plan * plan, plans_->at(batches.empty() ? 0 : std::max<int64_t>(rows, 0)));
  const size_t k = 1 + plan->outputs().size();
  if (index == 0) values.resize(values.size() + k, 0);
  loop.count_rows(sub_step, rows);
  if (!batches.empty() && rows == 0) {  // an empty shard: no gradient and no statistics
    if (index == 0) std::fill_n(gradients_.get(), graph_.arena_size(), 0.f);
    return {};
  }
  for (size_t i = 0; i < batches.size(); ++i) {
    feed_plan(*plan, (*loop.train)[i].layer, batches[i].tops);
  }
  const float share = batches.empty() ? 1.f / float(options_.shards) : float(rows) / float(total);
  const auto before = Loop::Clock::now();
  plan->run(*pool_, {.seed = seed_,
                     .sub_step = sub_step,
                     .first_sample = first,
                     .loss_scale = share,
                     .accumulate = index > 0});
  loop.compute_seconds += Loop::seconds(before);
  const double weight = double(share) / loop.passes;
  values[loop.values_begin] += weight * double(plan->loss());
  for (size_t i = 1; i < k; ++i) {
    const Plan::Blob& output = plan->outputs()[i - 1];
    if (output.shape.count() > 0) values[loop.values_begin + i] += weight * double(output.data[0]);
  }
  return {};
}

Status Trainer::test_all(Loop& loop) {
  // Counted from the iteration, so that a resumed run tests on the same batches.
  const caffe::SolverParameter& p = options_.solver.param;
  const int64_t index = iter_ / p.test_interval() - (p.test_initialization() ? 0 : 1);
  for (size_t i = 0; i < testers_.size() && i < loop.tests->size(); ++i) {
    options_.log.info("Iteration {}, Testing net (#{})", iter_, i);
    CFT_ASSIGN(
        const std::vector<TestOutput> outputs,
        testers_[i]->run(loop.group, options_.shards, (*loop.tests)[i], index, *pool_, seed_));
    TestResult event{iter_, testers_[i]->graph().name(), {}};
    for (size_t o = 0; o < outputs.size(); ++o) {
      const TestOutput& out = outputs[o];
      options_.log.info("    Test net output #{}: {} = {:g}{}", o, out.blob, out.mean,
                        loss_note(out.loss_weight, out.mean));
      event.outputs.emplace_back(out.blob, out.mean);
    }
    if (options_.events) options_.events->test(event);
  }
  return {};
}

Status Trainer::take_checkpoint(Loop& loop) {
  CFT_ASSIGN(full_history_, loop.sync->gather_history());
  loop.checkpoint_iter = iter_;
  if (rank_of(loop.group) != 0) return {};
  const SolverState state{iter_, "", current_step_, history_blobs(graph_, full_history_)};
  checkpoint_.step = iter_;
  checkpoint_.model = model_bytes();
  CFT_ASSIGN(checkpoint_.state, serialize_solver_state(state, ModelFormat::kBinary));
  return options_.on_checkpoint ? options_.on_checkpoint(checkpoint_) : Status();
}

Status Trainer::finish(Loop& loop) {
  const caffe::SolverParameter& p = options_.solver.param;
  if (loop.steps_pending > 0) CFT_TRY(report(loop, iter_ - 1));
  if (p.snapshot_after_train() && loop.checkpoint_iter != iter_) CFT_TRY(take_checkpoint(loop));
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
  const int64_t floats = graph_.arena_size() * int64_t(2 + full_history_.size());
  summary_.peak_bytes = plans_->bytes() + floats * int64_t(sizeof(float));
  return {};
}

}  // namespace cafetiere
