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

Result<HistoryArenas> history_arenas(const Graph& graph, std::span<const HistoryBlob> blobs,
                                     size_t kinds) {
  const auto is_learned = [](const Param& p) { return p.kind == ParamKind::kLearned; };
  const size_t learned =
      size_t(std::count_if(graph.params().begin(), graph.params().end(), is_learned));
  const bool all = blobs.size() == graph.params().size() * kinds;
  if (!all && blobs.size() != learned * kinds) {
    return invalid_argument(fmt::format(
        "Incorrect length of history blobs: the state has {}, this net and solver need {}",
        blobs.size(), learned * kinds));
  }
  HistoryArenas arenas(kinds, std::vector<float>(size_t(graph.arena_size()), 0.f));
  size_t blob = 0;
  for (std::vector<float>& arena : arenas) {
    for (const Param& p : graph.params()) {
      if (!is_learned(p) && !all) continue;
      const HistoryBlob& h = blobs[blob++];
      if (int64_t(h.values.size()) != p.shape.count()) {
        return invalid_argument(
            fmt::format("the state's history for layer '{}', blob {} has {} values, not {}",
                        p.layer, p.index, h.values.size(), p.shape.count()));
      }
      if (is_learned(p)) std::copy(h.values.begin(), h.values.end(), arena.begin() + p.offset);
    }
  }
  return arenas;
}

std::vector<HistoryBlob> history_blobs(const Graph& graph, HistoryArenas arenas) {
  std::vector<HistoryBlob> blobs;
  for (std::vector<float>& arena : arenas) {
    for (const Param& p : graph.params()) {
      std::vector<float> values(size_t(p.shape.count()), 0.f);
      if (p.kind == ParamKind::kLearned) {
        std::copy_n(arena.begin() + p.offset, p.shape.count(), values.begin());
      }
      blobs.push_back({p.shape, std::move(values)});
    }
    std::vector<float>().swap(arena);  // every copy counts where the weights fill the memory
  }
  return blobs;
}

Result<SyncState> sync_state(const Graph& graph, const SolverState& state, size_t kinds) {
  SyncState sync;
  CFT_ASSIGN(sync.history, history_arenas(graph, state.history, kinds));
  const auto fits = [&](const std::vector<float>& arena) {
    return int64_t(arena.size()) == graph.arena_size();
  };
  for (const HistoryArenas& replica : state.sync.replicas) {
    if (replica.size() == kinds && std::ranges::all_of(replica, fits)) continue;
    return invalid_argument("the state's replicas are those of another net or solver");
  }
  if (!std::ranges::all_of(state.sync.outer, fits)) {
    return invalid_argument("the state's outer history is that of another net");
  }
  sync.mode = state.sync.mode;
  sync.replicas = state.sync.replicas;
  sync.outer = state.sync.outer;
  return sync;
}

SolverState solver_state(const Graph& graph, int iter, int current_step, SyncState&& sync) {
  SolverState state{
      iter, "", current_step, history_blobs(graph, std::exchange(sync.history, {})), {}};
  state.sync = {std::move(sync.mode), std::move(sync.replicas), std::move(sync.outer)};
  return state;
}

}  // namespace cafetiere
