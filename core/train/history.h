// SPDX-License-Identifier: Apache-2.0
// Converts a solver's history between arenas and the blobs of solverstates.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/graph/graph.h"
#include "core/model/solver_state.h"
#include "core/sync/sync.h"
#include "core/train/early_stopping.h"

namespace cafetiere {

/// The parameters as updated by a solver.
std::vector<ParamSpan> param_spans(const Graph& graph);

/// The learned parameters as matrices: the first axis by all others.
std::vector<MatrixRange> param_matrices(const Graph& graph);

/// The state from which a mode resumes, read from `stored` as needed; zeros for statistics, whose
/// history is never used and may be missing. An error says what does not match the net or the
/// number of history values, `kinds`. `graph` must outlive it.
Result<std::unique_ptr<ModeState>> mode_state(const Graph& graph,
                                              std::shared_ptr<StateSource> stored, size_t kinds);

/// Resumes from the tests of a state; an error if they belong to another net.
Status restore_tests(const StoppingTests& tests, const Graph& graph, EarlyStopping* stopping);

/// The state to store, converted from a mode's: the history of the parameters in net order, all
/// first kinds before all second ones; zeros for statistics, because Caffe requires a history for
/// them.
class TrainingState final : public StateSource {
 public:
  /// Both arguments must outlive it.
  TrainingState(const Graph& graph, int iter, int current_step, ModeState& mode);
  Status read(const StateArray& array, size_t begin, std::span<float> out) override;

 private:
  const Graph& graph_;
  ModeState& mode_;
};

}  // namespace cafetiere
