// SPDX-License-Identifier: Apache-2.0
#include "core/train/rounds.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/comm/shard_tree.h"
#include "core/graph/arena.h"
#include "core/solver/update_rule.h"
#include "core/sync/shard_mean.h"

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
  CFT_ASSIGN(graph_, training_graph(options_));
  CFT_ASSIGN(const auto update, make_update_rule(p));
  kinds_ = size_t(update->history_per_param());
  shared_.assign(shared_floats(graph_, kinds_, rule_), 0.f);
  Random random{uint32_t(seed_of(options_))};
  CFT_TRY(init_params(graph_, random, std::span(shared_).first(floats())));
  outer_ = outer_step_of(p.sync(), 0, floats(), size_t(graph_.learned_size()));
  return {};
}

Status Rounds::restore(const caffe::NetParameter& weights, const SolverState* state) {
  std::vector<std::string> ignored;
  CFT_TRY(load_weights(graph_, weights, std::span(shared_).first(floats()), &ignored));
  for (const std::string& name : ignored) options_.log.notice("Ignoring source layer {}", name);
  if (!state) return {};
  iter_ = state->iter;
  CFT_ASSIGN(const SyncState parsed, sync_state(graph_, *state, kinds_));
  if (rule_ == HistoryRule::kAveraged) {
    auto at = shared_.begin() + ptrdiff_t(floats());
    for (const std::vector<float>& kind : parsed.history) at = std::ranges::copy(kind, at).out;
  }
  if (outer_) outer_->restore(parsed);
  return {};
}

int Rounds::length() const {
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

Result<std::string> Rounds::model() const {
  return serialize_weights(to_weights(graph_, std::span(shared_).first(floats())),
                           ModelFormat::kBinary);
}

Result<std::string> Rounds::state(std::vector<HistoryArenas> replicas) const {
  SyncState state;
  state.mode = solver().sync().mode();
  if (!replicas.empty()) {
    state.history = replicas.front();
    state.replicas = std::move(replicas);
  } else {
    for (size_t kind = 0; kind < kinds_; ++kind) {
      const auto from = shared_.begin() + ptrdiff_t((kind + 1) * floats());
      state.history.push_back(rule_ == HistoryRule::kAveraged
                                  ? std::vector<float>(from, from + ptrdiff_t(floats()))
                                  : std::vector<float>(floats(), 0.f));
    }
  }
  if (outer_) CFT_TRY(outer_->keep(nullptr, floats(), &state));
  CFT_ASSIGN(const LrPolicy policy, LrPolicy::create(solver()));
  return serialize_solver_state(
      solver_state(graph_, iter_, current_step_at(policy, iter_), std::move(state)),
      ModelFormat::kBinary);
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
