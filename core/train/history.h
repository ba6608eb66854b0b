// A solver's history between the arenas that updates work on and the blobs that states hold.
#pragma once

#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/model/solver_state.h"
#include "core/solver/arena_update.h"

namespace cafetiere {

/// One arena a kind of history value, laid out as the parameters are.
using HistoryArenas = std::vector<std::vector<float>>;

/// The parameters as a solver updates them.
std::vector<ParamSpan> param_spans(const Graph& graph);

/// The arenas that `blobs` fill. That of statistics is never used and may be left out. An error says
/// what does not fit the net or the solver's `kinds` of history.
Result<HistoryArenas> history_arenas(const Graph& graph, std::span<const HistoryBlob> blobs,
                                     size_t kinds);

/// The parameters' history in net order, all first kinds before all second ones; zeros for
/// statistics, for which Caffe insists on having some.
std::vector<HistoryBlob> history_blobs(const Graph& graph, const HistoryArenas& arenas);

}  // namespace cafetiere
