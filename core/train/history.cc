// SPDX-License-Identifier: Apache-2.0
#include "core/train/history.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace cafetiere {

std::vector<ParamSpan> param_spans(const Graph& graph) {
  std::vector<ParamSpan> spans;
  for (const Param& p : graph.params()) {
    spans.push_back({p.offset, p.shape.count(), p.lr_mult, p.decay_mult,
                     p.kind == ParamKind::kStatistic, p.fraction});
  }
  return spans;
}

std::vector<MatrixRange> param_matrices(const Graph& graph) {
  std::vector<MatrixRange> matrices;
  for (const Param& p : graph.params()) {
    if (p.kind != ParamKind::kLearned || p.shape.axes() < 2) continue;
    matrices.push_back({size_t(p.offset), size_t(p.shape[0]), size_t(p.shape.count(1))});
  }
  return matrices;
}

namespace {

bool is_learned(const Param& p) { return p.kind == ParamKind::kLearned; }

/// A stored state, read into arenas.
class StoredMode final : public ModeState {
 public:
  StoredMode(const Graph& graph, std::shared_ptr<StateSource> stored)
      : graph_(graph), stored_(std::move(stored)) {
    const StateOutline& o = stored_->outline;
    mode = o.mode;
    replicas = o.replicas.size();
    outer = o.outer.size();
  }

  /// Locates the blobs of the history.
  Status open(size_t history_kinds) {
    kinds = history_kinds;
    const std::vector<Shape>& blobs = stored_->outline.history;
    const auto& params = graph_.params();
    const auto learned = size_t(std::ranges::count_if(params, is_learned));
    all_ = blobs.size() == params.size() * kinds;
    if (!all_ && blobs.size() != learned * kinds) {
      return invalid_argument(fmt::format(
          "Incorrect length of history blobs: the state has {}, this net and solver need {}",
          blobs.size(), learned * kinds));
    }
    for (size_t kind = 0, blob = 0; kind < kinds; ++kind) {
      for (const Param& p : params) {
        if (!is_learned(p) && !all_) continue;
        if (const Shape& shape = blobs[blob++]; shape.count() != p.shape.count()) {
          return invalid_argument(
              fmt::format("the state's history for layer '{}', blob {} has {} values, not {}",
                          p.layer, p.index, shape.count(), p.shape.count()));
        }
      }
    }
    return check_arenas();
  }

  Status read(const StateArray& array, size_t begin, std::span<float> out) override {
    if (array.kind != StateArray::kHistory) return stored_->read(array, begin, out);
    std::ranges::fill(out, 0.F);
    size_t blob = array.index * (all_ ? graph_.params().size() : learned_count());
    for (const Param& p : graph_.params()) {
      if (!is_learned(p) && !all_) continue;
      const size_t number = blob++, offset = size_t(p.offset);
      const size_t from = std::max(begin, offset);
      const size_t to = std::min(begin + out.size(), offset + size_t(p.shape.count()));
      if (from >= to || !is_learned(p)) continue;
      CFT_TRY(stored_->read({StateArray::kHistory, number}, from - offset,
                            out.subspan(from - begin, to - from)));
    }
    return {};
  }

 private:
  size_t learned_count() const {
    return size_t(std::ranges::count_if(graph_.params(), is_learned));
  }

  Status check_arenas() const {
    const auto fits = [&](size_t floats) { return int64_t(floats) == graph_.arena_size(); };
    for (const auto& replica : stored_->outline.replicas) {
      if (replica.size() == kinds && std::ranges::all_of(replica, fits)) continue;
      return invalid_argument("the state's replicas are those of another net or solver");
    }
    if (std::ranges::all_of(stored_->outline.outer, fits)) return {};
    return invalid_argument("the state's outer history is that of another net");
  }

  const Graph& graph_;
  const std::shared_ptr<StateSource> stored_;
  bool all_ = false;  // statistics have history, too
};

}  // namespace

Result<std::unique_ptr<ModeState>> mode_state(const Graph& graph,
                                              std::shared_ptr<StateSource> stored, size_t kinds) {
  auto state = std::make_unique<StoredMode>(graph, std::move(stored));
  CFT_TRY(state->open(kinds));
  return std::unique_ptr<ModeState>(std::move(state));
}

Status restore_tests(const StoppingTests& tests, const Graph& graph, EarlyStopping* stopping) {
  if (!tests.best.empty() && int64_t(tests.best.size()) != graph.arena_size()) {
    return invalid_argument("the state's best weights are those of another net");
  }
  stopping->restore(tests);
  return {};
}

TrainingState::TrainingState(const Graph& graph, int iter, int current_step, ModeState& mode)
    : graph_(graph), mode_(mode) {
  const auto floats = size_t(graph.arena_size());
  outline = {.iter = iter,
             .current_step = current_step,
             .mode = mode.mode,
             .replicas = {mode.replicas, std::vector<size_t>(mode.kinds, floats)},
             .outer = std::vector<size_t>(mode.outer, floats)};
  for (size_t kind = 0; kind < mode.kinds; ++kind) {
    for (const Param& p : graph.params()) outline.history.push_back(p.shape);
  }
}

Status TrainingState::read(const StateArray& array, size_t begin, std::span<float> out) {
  if (array.kind != StateArray::kHistory) return mode_.read(array, begin, out);
  const size_t params = graph_.params().size();
  const Param& p = graph_.params()[array.index % params];
  std::ranges::fill(out, 0.F);
  if (!is_learned(p)) return {};
  return mode_.read({StateArray::kHistory, array.index / params}, size_t(p.offset) + begin, out);
}

}  // namespace cafetiere
