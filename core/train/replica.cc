// SPDX-License-Identifier: Apache-2.0
#include "core/train/replica.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/device/device.h"
#include "core/device/precision.h"
#include "core/graph/arena.h"
#include "core/layers/indices.h"
#include "core/layers/registry.h"
#include "core/solver/random_seed.h"
#include "core/sync/modes.h"
#include "core/train/nets.h"
#include "core/train/posterior.h"
#include "core/train/solver_checks.h"

namespace cafetiere {
namespace {

/// A source of the rows of `shard`, in the order of their positions among `total`.
Result<std::unique_ptr<RowsSource>> source_of(RowTable&& rows, int shard, int shards, int64_t total,
                                              const FedTops& tops, bool train, uint64_t seed) {
  ShardStore store(rows.schema(), shards, {shard, shard + 1}, total);
  if (rows.rows() != store.counts()[size_t(shard)]) {
    return invalid_argument(fmt::format("shard {} was given {} rows of {}, not {}", shard,
                                        rows.rows(), total, store.counts()[size_t(shard)]));
  }
  for (int64_t i = 0; i < rows.rows(); ++i) store.place(i * shards + shard, rows.row(i));
  store.adopt(rows.take_store());
  CFT_ASSIGN(auto source, RowsSource::make(std::make_shared<const ShardStore>(std::move(store)),
                                           tops.inputs, tops.batch, train, seed));
  CFT_TRY(source->validate());
  return source;
}

Status check_shared(size_t given, size_t wanted) {
  if (given == wanted) return {};
  return invalid_argument(
      fmt::format("a round was given {} floats and this net and solver share {}; all ends of a "
                  "training must be "
                  "given the same solver and net",
                  given, wanted));
}

}  // namespace

Status settle_options(ReplicaOptions& options) {
  caffe::SolverParameter& p = options.solver.param;
  CFT_TRY(check_solver(p));
  if (options.max_iter > 0) p.set_max_iter(int(options.max_iter));
  CFT_TRY(check_sync(p.sync()));
  if (p.precision() == "auto_float32") {
    return invalid_argument(
        "precision auto_float32: the rounds engine's replicas cannot agree on one when they start; "
        "use float32 or bf16x6");
  }
  if (find_sync_mode(p.sync().mode())->rounds) return {};
  return invalid_argument(
      fmt::format("sync {{ mode: \"{}\" }}: the rounds engine needs replicas that train "
                  "independently between exchanges; use \"{}\"",
                  p.sync().mode(), fmt::join(sync_mode_names(&SyncMode::rounds), "\" or \"")));
}

uint64_t seed_of(const ReplicaOptions& options) {
  return random_seed(options.solver.param, options.seed);
}

Result<NetChoice> training_choice(const ReplicaOptions& options) {
  return training_net(options.solver, options.has_net ? &options.net : nullptr);
}

Result<Graph> training_graph(const NetChoice& choice) {
  return Graph::build(choice.net, choice.state, {.types = layer_types(), .fed = {}});
}

size_t shared_floats(const Graph& graph, size_t kinds, HistoryRule rule) {
  return size_t(graph.arena_size()) * (1 + (rule == HistoryRule::kAveraged ? kinds : 0));
}

Result<std::unique_ptr<Replica>> Replica::create(ReplicaOptions options) {
  CFT_TRY(settle_options(options).with_context(options.solver.source));
  std::unique_ptr<Replica> replica(new Replica(std::move(options)));
  CFT_TRY(replica->build());
  return replica;
}

Status Replica::build() {
  const caffe::SolverParameter& p = options_.solver.param;
  rule_ = history_rule(p.sync());
  CFT_ASSIGN(const Precision precision, precision_of(p.precision()));
  device_ = make_cpu_device(precision);
  pool_ = std::make_unique<ThreadPool>(options_.threads);
  CFT_ASSIGN(const NetChoice choice, training_choice(options_));
  CFT_ASSIGN(graph_, training_graph(choice));
  CFT_ASSIGN(posteriors_, EmbeddingPosterior::all(choice, graph_));
  options_.log.info("Shard {} of {} trains net {}", options_.shard, options_.shards, graph_.name());
  const int64_t floats = graph_.arena_size();
  CFT_ASSIGN(weights_, allocate_host_floats(floats));
  CFT_ASSIGN(gradients_, allocate_host_floats(floats));
  CFT_ASSIGN(ArenaUpdate update, ArenaUpdate::make(p, param_spans(graph_), graph_.learned_size()));
  CFT_ASSIGN(policy_, LrPolicy::create(p));
  replicas_ =
      std::make_unique<Replicas>(SyncContext{.shards = options_.shards,
                                             .floats = floats,
                                             .clip = p.clip_gradients(),
                                             .pool = pool_.get(),
                                             .log = options_.log},
                                 ShardRange{options_.shard, options_.shard + 1}, std::move(update));
  if (rule_ == HistoryRule::kReset) replicas_->reset_every(p.sync().period());
  plans_ = std::make_unique<PlanSet>(
      &graph_, device_.get(), param_pointers(graph_, weights_.get(), gradients_.get()), true);
  return p.test_interval() > 0 ? build_test() : Status();
}

/// The first test net uses the training net's weights; layers missing there are initialised by
/// fillers.
Status Replica::build_test() {
  CFT_ASSIGN(const std::vector<NetChoice> tests,
             test_nets(options_.solver, options_.has_net ? &options_.net : nullptr));
  if (tests.empty()) return {};
  CFT_ASSIGN(test_graph_,
             Graph::build(tests[0].net, tests[0].state, {.types = layer_types(), .fed = {}}));
  test_params_.resize(size_t(test_graph_->arena_size()));
  Random random{uint32_t(seed_of(options_))};
  CFT_TRY(init_params(*test_graph_, random, test_params_));
  ParamPointers pointers;
  CFT_ASSIGN(pointers.data,
             shared_params(*test_graph_, graph_, weights_.get(), test_params_.data()));
  pointers.diff.assign(pointers.data.size(), nullptr);
  tester_ = std::make_unique<Tester>(&*test_graph_, device_.get(), std::move(pointers));
  return {};
}

Status Replica::feed(RowTable&& rows, int64_t total_rows) {
  CFT_TRY(check_bindings(options_.inputs, graph_, test_graph_ ? &*test_graph_ : nullptr));
  CFT_ASSIGN(const FedTops fed, bind_rows(graph_, rows.schema(), options_.inputs, false));
  runner_.reset();  // it may be using the source
  CFT_ASSIGN(source_, source_of(std::move(rows), options_.shard, options_.shards, total_rows, fed,
                                true, seed_of(options_)));
  feeds_ = {{"", source_.get(), fed.names()}};
  CFT_TRY(check_posteriors(posteriors_, feeds_));
  CFT_ASSIGN(runner_, ShardRunner::create({.solver = &options_.solver.param,
                                           .plans = plans_.get(),
                                           .pool = pool_.get(),
                                           .weights = weights(),
                                           .gradients = gradients(),
                                           .seed = seed_of(options_),
                                           .shards = options_.shards,
                                           .feeds = &feeds_,
                                           .prefetch_threads = options_.prefetch_threads,
                                           .cancelled = &cancelled_,
                                           .begun = &step_},
                                          replicas_.get()));
  return {};
}

Status Replica::hold_out(RowTable&& rows) {
  const int64_t count = rows.rows();
  if (!tester_ || count == 0) return {};
  CFT_ASSIGN(const FedTops fed, bind_rows(*test_graph_, rows.schema(), options_.inputs, false));
  test_tops_ = fed.names();
  CFT_ASSIGN(held_out_, source_of(std::move(rows), 0, 1, count, fed, false, seed_of(options_)));
  return {};
}

Status Replica::restore(const std::shared_ptr<StateSource>& state) {
  CFT_ASSIGN(const auto mode, mode_state(graph_, state, replicas_->kinds()));
  return replicas_->restore(*mode);
}

Status Replica::take(std::span<const float> shared) {
  CFT_TRY(check_shared(shared.size(), shared_floats(graph_, replicas_->kinds(), rule_)));
  const size_t floats = weights().size();
  std::copy_n(shared.begin(), floats, weights().begin());
  size_t at = floats;
  if (rule_ == HistoryRule::kReset) replicas_->reset_history();
  if (rule_ != HistoryRule::kAveraged) return {};
  for (std::vector<float>& kind : replicas_->history(0)) {
    std::copy_n(shared.begin() + ptrdiff_t(at), floats, kind.begin());
    at += floats;
  }
  return {};
}

void Replica::give(std::span<float> shared) {
  auto at = std::ranges::copy(weights(), shared.begin()).out;
  if (rule_ != HistoryRule::kAveraged) return;
  for (const std::vector<float>& kind : replicas_->history(0)) {
    at = std::ranges::copy(kind, at).out;
  }
}

Result<RoundReport> Replica::round(int iter, int steps, std::span<float> shared) {
  if (!runner_) return internal_error("a replica was given a round before it had rows");
  CFT_TRY(take(shared));
  const double waited = runner_->wait_seconds(), computed = runner_->compute_seconds();
  int current_step = current_step_at(*policy_, iter);
  const std::vector<UpdateStep> updates =
      update_steps(*policy_, options_.solver.param, iter, steps, &current_step, {});
  CFT_TRY(runner_->round(updates));
  step_ = iter + steps;
  const auto& rows = runner_->rows_by_epoch();
  RoundReport report{
      .losses = runner_->values().front().losses,
      .rows = {rows.begin(), rows.end()},
      .epoch = runner_->epochs_at(int64_t(iter + steps) * options_.solver.param.iter_size()),
      .rate = updates.back().rate,
      .compute_seconds = runner_->compute_seconds() - computed,
      .wait_seconds = runner_->wait_seconds() - waited};
  runner_->clear_losses();
  runner_->clear_rows();
  CFT_TRY(check_losses(report.losses, iter));
  give(shared);
  return report;
}

Result<std::vector<float>> Replica::sum_posterior(std::span<const float> floats) {
  if (feeds_.empty()) return internal_error("a replica was given a posterior before it had rows");
  const int64_t which = floats.empty() ? -1 : index_below(floats[0], int64_t(posteriors_.size()));
  const size_t arena = weights().size();
  if (which < 0 || floats.size() != 1 + arena + posteriors_[size_t(which)].shared_floats()) {
    return invalid_argument("the floats of a posterior are not those of this solver and net");
  }
  const EmbeddingPosterior& posterior = posteriors_[size_t(which)];
  std::ranges::copy(floats.subspan(1, arena), weights().begin());
  std::vector<float> sums(posterior.sum_floats());
  CFT_TRY(posterior.sum_shard(weights(), floats.subspan(1 + arena), feeds_.front(), options_.shard,
                              {device_.get(), pool_.get(), seed_of(options_), &cancelled_}, sums));
  return sums;
}

Status Replica::check_losses(std::span<const double> losses, int iter) const {
  const auto bad = std::ranges::find_if_not(losses, [](double l) { return std::isfinite(l); });
  if (bad == losses.end()) return {};
  return check_loss(*bad, iter + int(bad - losses.begin()),
                    fmt::format(" of shard {}", options_.shard));
}

Result<ShardScores> Replica::test(std::span<const float> shared) {
  ShardScores result;
  if (!held_out_) return result;
  CFT_TRY(take(shared));
  const Sampler& sampler = held_out_->sampler();
  result.net = test_graph_->name();
  result.rows = sampler.total_rows_of(0);
  const TestFeed feed{{{"", held_out_.get(), test_tops_}}, sampler.batches_per_epoch(), true};
  CFT_ASSIGN(result.scores,
             tester_->run({.seed = seed_of(options_), .go_on = {}}, feed, 0, *pool_));
  return result;
}

}  // namespace cafetiere
