// SPDX-License-Identifier: Apache-2.0
#include "core/train/rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/comm/shard_tree.h"
#include "core/device/precision.h"
#include "core/graph/arena.h"
#include "core/solver/update_rule.h"
#include "core/sync/shard_mean.h"
#include "core/train/solver_checks.h"

namespace cafetiere {

Result<std::unique_ptr<Rounds>> Rounds::create(ReplicaOptions options) {
  CFT_TRY(settle_options(options).with_context(options.solver.source));
  std::unique_ptr<Rounds> rounds(new Rounds(std::move(options)));
  CFT_TRY(rounds->build());
  return rounds;
}

Status Rounds::build() {
  const caffe::SolverParameter& p = solver();
  rule_ = history_rule(p.sync());
  if (p.sync().wire() != "float32" || p.sync().exchange() != "tree") {
    options_.log.warning(
        "sync: wire and exchange have no effect where a driver adds the replicas up");
  }
  CFT_ASSIGN(const NetChoice choice, training_choice(options_));
  CFT_ASSIGN(graph_, training_graph(choice));
  CFT_TRY(check_layer_names(graph_).with_context(choice.net.source));
  CFT_ASSIGN(posteriors_, EmbeddingPosterior::all(choice, graph_));
  CFT_ASSIGN(stopping_, EarlyStopping::make(p));
  CFT_ASSIGN(const auto update, make_update_rule(p));
  kinds_ = size_t(update->history_per_param());
  shared_.assign(shared_floats(graph_, kinds_, rule_), 0.f);
  Random random{uint32_t(seed_of(options_))};
  CFT_TRY(init_params(graph_, random, std::span(shared_).first(floats())));
  outer_ = outer_step_of(p.sync(), 0, floats(), size_t(graph_.learned_size()));
  return {};
}

Status Rounds::restore(const StoredWeights& weights, const std::shared_ptr<StateSource>& state) {
  CFT_TRY(begin_with_weights(graph_, weights, std::span(shared_).first(floats()), options_.log));
  if (!state) return {};
  iter_ = state->outline.iter;
  if (stopping_) CFT_TRY(restore_tests(state->outline.stopping, graph_, &*stopping_));
  CFT_ASSIGN(const auto mode, mode_state(graph_, state, kinds_));
  for (size_t kind = 0; rule_ == HistoryRule::kAveraged && kind < kinds_; ++kind) {
    CFT_TRY(mode->read({StateArray::kHistory, kind}, 0,
                       std::span(shared_).subspan((kind + 1) * floats(), floats())));
  }
  return outer_ ? outer_->restore(*mode) : Status();
}

int Rounds::length() const {
  if (stopping_ && stopping_->has_stopped()) return 0;
  const int period = solver().sync().period();
  return std::min(period - iter_ % period, std::max(0, solver().max_iter() - iter_));
}

Status Rounds::end_round(std::span<const std::span<const float>> sums) {
  CFT_ASSIGN(std::vector<float> mean, tree_sum_of(sums));
  if (mean.size() != shared_.size()) {
    return internal_error(
        fmt::format("a round ended with {} floats instead of {}", mean.size(), shared_.size()));
  }
  divide_by_shards(mean, options_.shards);
  if (outer_) outer_->apply(shared_, mean);
  iter_ += length();
  shared_ = std::move(mean);
  return {};
}

Status Rounds::test(double value) {
  if (!stopping_) return invalid_argument("the solver does not ask for early stopping");
  stopping_->observe(iter_, value, std::span(shared_).first(floats()));
  return {};
}

std::span<const float> Rounds::best_weights() const {
  const bool has_best = stopping_ && !stopping_->best_weights().empty();
  if (has_best && length() == 0 && stopping_->is_tested(iter_)) return stopping_->best_weights();
  return std::span(shared_).first(floats());
}

Result<std::vector<float>> Rounds::begin_posterior() {
  if (!posterior_due()) return invalid_argument("no posterior mean is due");
  EmbeddingPosterior& posterior = posteriors_[next_posterior_];
  options_.log.info("Posterior means of {}: one pass over the rows", posterior.layer());
  if (final_.empty()) final_.assign(best_weights().begin(), best_weights().end());
  CFT_ASSIGN(const Precision precision, precision_of(solver().precision()));
  const auto device = make_cpu_device(precision);
  ThreadPool pool(options_.threads);
  CFT_ASSIGN(const std::vector<float> shared,
             posterior.find_candidates(final_, {device.get(), &pool, seed()}));
  std::vector<float> floats{float(next_posterior_)};
  floats.insert(floats.end(), final_.begin(), final_.end());
  floats.insert(floats.end(), shared.begin(), shared.end());
  return floats;
}

Status Rounds::end_posterior(std::span<const std::span<const float>> sums) {
  if (!posterior_due() || final_.empty()) return invalid_argument("no posterior mean was begun");
  CFT_ASSIGN(const std::vector<float> sum, tree_sum_of(sums));
  EmbeddingPosterior& posterior = posteriors_[next_posterior_];
  if (sum.size() != posterior.sum_floats()) {
    return internal_error(fmt::format("a posterior ended with {} floats instead of {}", sum.size(),
                                      posterior.sum_floats()));
  }
  posterior.take_means(sum, final_);
  ++next_posterior_;
  return {};
}

Result<std::string> Rounds::model() const {
  const std::span<const float> weights = final_.empty() ? best_weights() : std::span(final_);
  return serialize_weights(to_weights(graph_, weights), ModelFormat::kBinary);
}

Result<std::string> Rounds::state(std::span<const std::span<const float>> replicas) const {
  const auto arena = [&](const float* values) { return StateParts{{0, 0, floats(), values}}; };
  PlacedState placed{.mode = solver().sync().mode()};
  for (const std::span<const float> shard : replicas) {
    if (shard.size() != floats() * kinds_) {
      return invalid_argument("the history of a shard is not that of this net and solver");
    }
    std::vector<StateParts>& arrays = placed.replicas.emplace_back();
    for (size_t kind = 0; kind < kinds_; ++kind) {
      arrays.push_back(arena(shard.data() + kind * floats()));
    }
  }
  if (!placed.replicas.empty()) {
    placed.history = placed.replicas.front();
  } else {
    for (size_t kind = 0; kind < kinds_; ++kind) {
      placed.history.push_back(rule_ == HistoryRule::kAveraged
                                   ? arena(shared_.data() + (kind + 1) * floats())
                                   : StateParts());
    }
  }
  if (outer_) placed.outer.push_back(outer_->placed(nullptr, floats()));
  CFT_ASSIGN(const LrPolicy policy, LrPolicy::create(solver()));
  std::string bytes;
  CFT_TRY(show_placed(nullptr, placed, [&](ModeState& mode) -> Status {
    TrainingState state(graph_, iter_, current_step_at(policy, iter_), mode);
    if (stopping_) state.outline.stopping = stopping_->tests();
    CFT_ASSIGN(const Precision precision, precision_of(solver().precision()));
    state.outline.precision = stored_precision(precision);
    CFT_ASSIGN(bytes, serialize_solver_state(state, ModelFormat::kBinary));
    return {};
  }));
  return bytes;
}

Result<std::vector<float>> tree_sum_of(std::span<const std::span<const float>> arrays) {
  if (arrays.empty()) return invalid_argument("a sum needs at least one array");
  const size_t floats = arrays.front().size();
  const int count = int(arrays.size());
  TreeSum sum({0, count}, count, floats, nullptr);
  for (const std::span<const float> array : arrays) CFT_TRY(sum.add(array));
  const float* total = sum.partials().front().data;
  return std::vector<float>(total, total + floats);
}

}  // namespace cafetiere
