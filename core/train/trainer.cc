// SPDX-License-Identifier: Apache-2.0
#include "core/train/trainer.h"

#include <fmt/format.h>

#include <cstring>
#include <random>

#include "core/comm/collectives.h"
#include "core/graph/arena.h"
#include "core/graph/net_log.h"
#include "core/layers/registry.h"
#include "core/model/file.h"
#include "core/model/weights.h"
#include "core/solver/random_seed.h"
#include "core/sync/modes.h"
#include "core/train/immediate_update.h"
#include "core/train/loop.h"
#include "core/train/solver_checks.h"

namespace cafetiere {
namespace {

Status no_state() { return not_found("there is no state: rank 0 has it after the run"); }

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
  CFT_TRY(check_sync(p.sync()).with_context(options_.solver.source));
  if (options_.shards < 1) return invalid_argument("shards must be at least 1");
  if (options_.survivors && !find_sync_mode(p.sync().mode())->survivors) {
    return invalid_argument(fmt::format("ranks cannot come and go in mode \"{}\": use one of {}",
                                        p.sync().mode(),
                                        fmt::join(sync_mode_names(&SyncMode::survivors), ", ")));
  }
  if (options_.threads < 1) return invalid_argument("threads must be at least 1");
  seed_ = random_seed(p, options_.seed);
  if (options_.max_iter > 0) options_.solver.param.set_max_iter(int(options_.max_iter));
  CFT_ASSIGN(const Precision precision, first_precision());
  CFT_TRY(use_precision(precision));
  pool_ = std::make_unique<ThreadPool>(options_.threads);

  CFT_ASSIGN(const NetChoice choice, training_choice());
  options_.log.info("Creating training net {}", choice.origin);
  CFT_ASSIGN(graph_, training_graph(choice));
  CFT_TRY(check_layer_names(graph_).with_context(choice.net.source));
  log_net(choice.net, choice.state, graph_, options_.log);
  CFT_ASSIGN(posteriors_, EmbeddingPosterior::all(choice, graph_));
  CFT_ASSIGN(weights_, allocate_shared_arena(graph_.arena_size()));
  CFT_ASSIGN(const auto rule, make_update_rule(p));
  immediate_ = options_.shards == 1 && !options_.survivors && ImmediateUpdate::suits(p, *rule);
  if (!immediate_) {
    CFT_ASSIGN(gradients_, allocate_shared_arena(graph_.arena_size()));
  }
  Random random{uint32_t(seed_)};
  const std::span<float> arena(weights_.get(), size_t(graph_.arena_size()));
  CFT_TRY(init_params(graph_, random, arena));
  CFT_ASSIGN(stopping_, EarlyStopping::make(p));
  if (stopping_ && options_.survivors) {
    return invalid_argument("early_stopping needs ranks that stay; those of survivors come and go");
  }
  plans_ = std::make_unique<PlanSet>(&graph_, device_.get(),
                                     param_pointers(graph_, weights_.get(), gradients_.get()), true,
                                     immediate_);
  CFT_TRY(plans_->at(0).status());  // so that an impossible plan fails now, not in the first step
  return p.test_interval() > 0 ? build_tests(random) : Status();
}

/// An arena that other ranks of this host can read, if there may be any and the system allows it.
Result<std::shared_ptr<float>> Trainer::allocate_shared_arena(int64_t floats) {
  if (options_.shards == 1) return allocate_host_floats(floats);
  auto memory = SharedMemory::create(size_t(floats) * sizeof(float));
  if (!memory.ok()) return allocate_host_floats(floats);
  shared_arenas_.push_back(*memory);
  std::memset((*memory)->data(), 0, (*memory)->size());  // touch the pages now, not in the first
                                                         // step
  auto* const data = reinterpret_cast<float*>((*memory)->data());
  return std::shared_ptr<float>(data, [kept = std::move(*memory)](float*) {});
}

Result<NetChoice> Trainer::training_choice() const {
  return training_net(options_.solver, options_.has_net ? &options_.net : nullptr);
}

Result<Graph> Trainer::training_graph(const NetChoice& choice) const {
  return Graph::build(choice.net, choice.state,
                      {.types = layer_types(), .fed = options_.train_shapes});
}

/// The test nets use the training net's weights; layers missing there keep their own.
Status Trainer::build_tests(Random& random) {
  CFT_ASSIGN(const std::vector<NetChoice> tests,
             test_nets(options_.solver, options_.has_net ? &options_.net : nullptr));
  for (const NetChoice& test : tests) {
    const size_t i = test_graphs_.size();
    options_.log.info("Creating test net (#{}) {}", i, test.origin);
    const auto& shapes = options_.test_shapes;
    CFT_ASSIGN(Graph graph,
               Graph::build(test.net, test.state,
                            {.types = layer_types(),
                             .fed = i < shapes.size() ? shapes[i] : TrainerOptions::FedShapes()}));
    log_net(test.net, test.state, graph, options_.log);
    test_graphs_.push_back(std::move(graph));
  }
  for (const Graph& graph : test_graphs_) {
    std::vector<float>& own = test_params_.emplace_back();
    if (!covers(graph_, graph)) {
      own.resize(size_t(graph.arena_size()));
      CFT_TRY(init_params(graph, random, own));
    }
    ParamPointers pointers;
    CFT_ASSIGN(pointers.data, shared_params(graph, graph_, weights_.get(), own.data()));
    pointers.diff.assign(pointers.data.size(), nullptr);
    testers_.push_back(std::make_unique<Tester>(&graph, device_.get(), std::move(pointers)));
  }
  return {};
}

Status Trainer::restore(const StoredWeights& weights, const std::shared_ptr<StateSource>& state) {
  CFT_TRY(begin_with_weights(graph_, weights, weights_span(), options_.log));
  for (size_t i = 0; i < test_params_.size(); ++i) {
    if (test_params_[i].empty()) continue;
    CFT_TRY(load_weights(test_graphs_[i], weights, test_params_[i], nullptr));
  }
  if (!state) return {};
  CFT_ASSIGN(const auto rule, make_update_rule(options_.solver.param));
  CFT_ASSIGN(restored_, mode_state(graph_, state, size_t(rule->history_per_param())));
  CFT_TRY(resume_precision(state->outline.precision));
  iter_ = state->outline.iter;
  current_step_ = state->outline.current_step;
  return stopping_ ? restore_tests(state->outline.stopping, graph_, &*stopping_) : Status();
}

Result<std::string> Trainer::model_bytes() const {
  return serialize_weights(to_weights(graph_, weights()), ModelFormat::kBinary);
}

Status Trainer::check_cancelled() const {
  return cancelled_ ? Status(ErrorCode::kCancelled, "the run was cancelled") : Status();
}

Result<std::string> Trainer::state_bytes() const {
  if (state_) return serialize_solver_state(*state_, ModelFormat::kBinary);
  if (!state_on_disk_) return no_state();
  return invalid_argument("the solver state is larger than the binary form holds; save it as HDF5");
}

bool Trainer::needs_files() const {
  return state_on_disk_ || binary_bytes(graph_, false) > size_t(kMaxFileBytes);
}

Status Trainer::save(const std::string& model_path, const std::string& state_path) {
  if (!model_path.empty()) CFT_TRY(write_hdf5_weights(graph_, weights(), {}, model_path));
  if (state_path.empty()) return {};
  if (state_on_disk_) {
    CFT_TRY(move_file(options_.large_state, state_path));
    state_on_disk_ = false;
    return {};
  }
  if (!state_) return no_state();
  const auto state = source_of(*std::exchange(state_, std::nullopt));
  const Status written = write_solver_state(*state, state_path, ModelFormat::kHdf5);
  if (!written.ok()) {  // it may be asked for again
    CFT_ASSIGN(state_, whole_state(*state));
  }
  return written;
}

/// A requested checkpoint goes to on_checkpoint(); with `keep`, the state is kept for
/// state_bytes().
Status Trainer::take_checkpoint(Loop& loop, Asked asked, bool keep) {
  const TimeAccount::Span time(&options_.time, Activity::kStoring);
  CFT_TRY(consolidate(loop, false));
  loop.checkpoint_iter = iter_;
  return loop.sync->show_state([&](ModeState& mode) -> Status {
    TrainingState state(graph_, iter_, current_step_, mode);
    if (stopping_) state.outline.stopping = stopping_->tests();
    state.outline.precision = stored_precision(precision_);
    if (asked != Asked::kNo && options_.on_checkpoint) {
      std::vector<float> moved(loop.weights_before.size());
      for (size_t i = 0; i < moved.size(); ++i) moved[i] = loop.weights_before[i] - weights()[i];
      CFT_TRY(options_.on_checkpoint({graph_, weights(), moved, state, asked == Asked::kSnapshot}));
    }
    return keep ? keep_state(state) : Status();
  });
}

Status Trainer::keep_state(StateSource& state) {
  state_.reset();  // release the previous one first: a copy of large weights may not fit
  state.outline.learned_net.clear();
  const bool large = binary_bytes(state.outline) > size_t(kMaxFileBytes);
  state_on_disk_ = large && !options_.large_state.empty();
  if (state_on_disk_) return write_solver_state(state, options_.large_state, ModelFormat::kHdf5);
  CFT_ASSIGN(state_, whole_state(state));
  return {};
}

}  // namespace cafetiere
