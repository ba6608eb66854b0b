// SPDX-License-Identifier: Apache-2.0
// A solver's history between the arenas that updates work on and the blobs that states hold.
#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/model/solver_state.h"
#include "core/sync/sync.h"

namespace cafetiere {

/// The parameters as a solver updates them.
std::vector<ParamSpan> param_spans(const Graph& graph);

/// The learned parameters as matrices: their first axis against all others.
std::vector<MatrixRange> param_matrices(const Graph& graph);

/// The arenas that `blobs` fill. That of statistics is never used and may be left out. An error says
/// what does not fit the net or the solver's `kinds` of history.
Result<HistoryArenas> history_arenas(const Graph& graph, std::span<const HistoryBlob> blobs,
                                     size_t kinds);

/// The parameters' history in net order, all first kinds before all second ones; zeros for
/// statistics, for which Caffe insists on having some. Frees each arena once it is read.
std::vector<HistoryBlob> history_blobs(const Graph& graph, HistoryArenas arenas);

/// What a mode goes on with, from a state; an error where it does not fit the net or the solver.
Result<SyncState> sync_state(const Graph& graph, const SolverState& state, size_t kinds);

/// The state that holds what a mode keeps.
SolverState solver_state(const Graph& graph, int iter, int current_step, SyncState&& sync);

}  // namespace cafetiere
