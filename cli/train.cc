// SPDX-License-Identifier: Apache-2.0
// train: trains a net from the databases that it names, as a solver says.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <numeric>
#include <optional>

#include "cli/command.h"
#include "cli/explanation.h"
#include "cli/flags.h"
#include "cli/glog.h"
#include "cli/ranks.h"
#include "cli/signals.h"
#include "core/comm/collectives.h"
#include "core/model/weights.h"
#include "core/observe/account.h"
#include "core/observe/event_files.h"
#include "core/observe/trace.h"
#include "core/solver/random_seed.h"
#include "core/train/feeds.h"
#include "core/train/snapshots.h"

namespace cafetiere {
namespace {

struct TrainFlags {
  std::string solver, snapshot, weights, events, trace;
  std::string sigint_effect = "stop", sighup_effect = "snapshot";
  int max_iter = 0;
  double price = 0;
  StateFlags state;
  std::string precision;
  DeviceFlags device;
  RankFlags ranks;
};

/// The databases of the training net and of each test net.
struct Feeds {
  NetFeeds train;
  std::vector<NetFeeds> tests;
};

Result<SolverText> read_solver_for(const TrainFlags& flags) {
  if (!flags.snapshot.empty() && !flags.weights.empty()) {
    return invalid_argument(
        "Give a snapshot to resume training or weights to finetune but not both.");
  }
  if (flags.snapshot.ends_with(".caffemodel") || flags.snapshot.ends_with(".caffemodel.h5")) {
    return invalid_argument(fmt::format(
        "--snapshot {} is a caffemodel, not a solver state: name the .solverstate beside it, or "
        "begin with these weights by --weights",
        flags.snapshot));
  }
  CFT_ASSIGN(SolverText solver, read_solver(flags.solver));
  caffe::SolverParameter& p = solver.param;
  // As in Caffe, level and stages reach the training net only: test nets have test_state.
  flags.state.apply(p.mutable_train_state());
  if (flags.max_iter > 0) p.set_max_iter(flags.max_iter);
  if (!flags.precision.empty()) p.set_precision(flags.precision);
  if (!flags.snapshot.empty() || !flags.weights.empty()) p.clear_weights();
  if (!flags.weights.empty()) p.add_weights(flags.weights);
  CFT_TRY(flags.ranks.apply(&p));
  return solver;
}

Result<Feeds> open_all_feeds(const SolverText& solver, uint64_t seed, int shards,
                             const Logger& log) {
  const caffe::SolverParameter& p = solver.param;
  Feeds feeds;
  CFT_ASSIGN(const NetChoice net, training_net(solver, nullptr));
  for (const std::string& warning : solver.warnings) log.warning("{}", warning);
  for (const std::string& note : net.net.notes) log.info("{}", note);
  CFT_ASSIGN(feeds.train, open_feeds(net, seed, log, shards));
  CFT_TRY(refuse_unfed(feeds.train, net.net.source));
  if (p.test_interval() == 0) {
    if (p.test_iter_size() + p.test_net_size() + p.test_net_param_size() == 0) return feeds;
    return invalid_argument(solver.source + ": test nets need a test_interval above 0");
  }
  CFT_ASSIGN(const std::vector<NetChoice> tests, test_nets(solver, nullptr));
  for (const NetChoice& test : tests) {
    CFT_ASSIGN(NetFeeds opened, open_feeds(test, seed, log, shards));
    CFT_TRY(refuse_unfed(opened, test.net.source));
    feeds.tests.push_back(std::move(opened));
  }
  return feeds;
}

/// Weights from the files of a solver's `weights` entries, each a comma separated list.
Status finetune(Trainer& trainer, const Logger& log) {
  for (const std::string& entry : trainer.solver().weights()) {
    for (const std::string& path : split_list(entry)) {
      log.info("Finetuning from {}", path);
      CFT_ASSIGN(const StoredWeights weights, StoredWeights::open(path));
      CFT_TRY(trainer.restore(weights).with_context(path));
    }
  }
  return {};
}

Status run_trainer(Trainer& trainer, Group* group, int shards, const Feeds& feeds,
                   const Logger& log) {
  const caffe::SolverParameter& solver = trainer.solver();
  if (solver.has_early_stopping() && solver.test_iter_size() > 0 && solver.test_iter(0) == 0) {
    return invalid_argument(
        "early_stopping watches the first test net, whose test_iter is 0: give it batches to test "
        "on");
  }
  std::vector<TestFeed> tests;
  for (size_t i = 0; i < feeds.tests.size(); ++i) {
    const int batches = int(i) < solver.test_iter_size() ? solver.test_iter(int(i)) : 0;
    // The shards share the batches of a test.
    tests.push_back({.feeds = feeds.tests[i].feeds, .batches = (batches + shards - 1) / shards});
  }
  log.info("Starting Optimization");
  log.info("Solving {}", trainer.graph().name());
  log.info("Learning Rate Policy: {}", trainer.solver().lr_policy());
  CFT_TRY(trainer.run(group, feeds.train.feeds, tests));
  log.info("Optimization Done.");
  return {};
}

/// What is about to run, before its databases are opened. A net that cannot be explained is trained all
/// the same.
std::optional<Explained> plan_of(const SolverText& solver, const Logger& log) {
  Subject subject;
  subject.solver = solver;
  subject.has_solver = true;
  const Result<Explanation> plan = explain(subject, {});
  if (plan.ok()) return Explained{plan->text};
  log.info("The net is not explained: {}", plan.status().message());
  return std::nullopt;
}

/// Tells what the time of all ranks went to. The others' ends where the ranks part; the longest is
/// that of the run.
void tell_account(const Trainer& trainer, const Group* group, int threads, double price,
                  EventSink& events, const Logger& log) {
  std::vector<TimeAccount::Seconds> ranks = trainer.summary().rank_seconds;
  ranks[size_t(rank_of(group))] = trainer.seconds();
  double wall = 0;
  for (const TimeAccount::Seconds& rank : ranks) {
    wall = std::max(wall, std::accumulate(rank.begin(), rank.end(), 0.));
  }
  Account all = account_of(ranks, threads, wall, price);
  for (const int64_t rows : trainer.summary().rows_per_epoch) all.rows_used += rows;
  log.info("Account: {} rows used; {}", all.rows_used, to_text(all));
  for (size_t rank = 0; ranks.size() > 1 && rank < ranks.size(); ++rank) {
    const Account one = account_of({&ranks[rank], 1}, threads, wall, price);
    log.info("Account of rank {}: {}", rank, to_text(one));
  }
  events.account(all);
}

Status train(const TrainFlags& flags) {
  TrainerOptions options;  // the account of time begins
  CFT_ASSIGN(const SignalEffect on_int, parse_signal_effect(flags.sigint_effect));
  CFT_ASSIGN(const SignalEffect on_hup, parse_signal_effect(flags.sighup_effect));
  SignalWatcher signals(on_int, on_hup);
  Glog glog(stderr);
  const Logger log = glog.logger();

  CFT_ASSIGN(SolverText solver, read_solver_for(flags));
  const caffe::SolverParameter& p = solver.param;
  flags.device.report(log, p.has_solver_mode() && p.solver_mode() == caffe::SolverParameter::GPU);
  log.info("Initializing solver from parameters: \n{}", to_text(p));
  CFT_ASSIGN(const Snapshots snapshots, Snapshots::make(solver, log));
  const uint64_t seed = random_seed(p, 1);
  const int shards = flags.ranks.shard_count();
  std::optional<Explained> plan;
  if (!flags.events.empty()) plan = plan_of(solver, log);
  CFT_ASSIGN(const Feeds feeds, open_all_feeds(solver, seed, shards, log));

  Broadcast events;
  if (auto sink = glog.progress_sink()) events.add(std::move(sink));
  if (!flags.events.empty()) {
    CFT_ASSIGN(auto files, open_event_files(flags.events, log));
    events.add(std::move(files));
  }
  const int threads = flags.device.thread_count();
  options.threads = threads;
  options.shards = shards;
  options.seed = seed;
  options.train_shapes = feeds.train.shapes;
  for (const NetFeeds& test : feeds.tests) options.test_shapes.push_back(test.shapes);
  options.log = log;
  options.events = &events;
  Trace trace(flags.ranks.rank);
  if (!flags.trace.empty()) options.trace = &trace;
  options.on_checkpoint = [&](const Checkpoint& c) { return snapshots.write(c); };
  options.solver = std::move(solver);
  CFT_ASSIGN(const std::unique_ptr<Trainer> trainer, Trainer::create(std::move(options)));
  log.info("Solver scaffolding done.");
  CFT_TRY(flags.snapshot.empty() ? finetune(*trainer, log) : resume(*trainer, flags.snapshot, log));
  CFT_ASSIGN(const std::unique_ptr<Group> group, flags.ranks.join(log));
  if (group) trace.set_process(group->rank());
  signals.start([&trainer](SignalEffect effect) {
    if (effect == SignalEffect::kStop) trainer->request_stop();
    if (effect == SignalEffect::kSnapshot) trainer->request_snapshot();
  });
  if (plan && rank_of(group.get()) == 0) events.explained(*plan);
  CFT_TRY(run_trainer(*trainer, group.get(), shards, feeds, log));
  if (rank_of(group.get()) == 0) {
    tell_account(*trainer, group.get(), threads, flags.price, events, log);
  }
  return flags.trace.empty() ? Status() : trace.write(flags.trace);
}

}  // namespace

Action add_train(CLI::App& app) {
  const auto flags = std::make_shared<TrainFlags>();
  app.add_option("--solver", flags->solver, "the solver's prototxt")->required();
  app.add_option("--snapshot", flags->snapshot, ".solverstate file to resume from");
  app.add_option("--weights", flags->weights,
                 ".caffemodel files to start from, separated by commas");
  app.add_option("--max_iter,--iterations", flags->max_iter,
                 "train to this iteration instead of the solver's max_iter")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--events", flags->events,
                 "also write PREFIX.jsonl and a TensorBoard file beside it");
  app.add_option("--trace", flags->trace,
                 "also write a timeline for chrome://tracing or Perfetto to this file");
  app.add_option("--price_per_core_hour", flags->price,
                 "price of a core-hour; the account at the end then also has the cost")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--sigint_effect", flags->sigint_effect, "on Ctrl-C: stop, snapshot or none");
  app.add_option("--sighup_effect", flags->sighup_effect, "on SIGHUP: stop, snapshot or none");
  flags->state.add(app);
  flags->device.add(app);
  add_precision(app, &flags->precision);
  flags->ranks.add(app);
  return [flags] { return train(*flags); };
}

}  // namespace cafetiere
