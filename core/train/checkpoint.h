// SPDX-License-Identifier: Apache-2.0
// Checkpoint: weights and state after a step, and the formats they can be stored in.
#pragma once

#include <span>
#include <string>

#include "core/graph/graph.h"
#include "core/model/solver_state.h"

namespace cafetiere {

/// In no file format yet: the receiver chooses one. Valid only during the call that receives it.
struct Checkpoint {
  const Graph& graph;
  std::span<const float> weights;
  std::span<const float> moved;  ///< with snapshot_diff: the last update, as subtracted from the
                                 ///< weights
  StateSource& state;            ///< read while it is being stored
  bool is_snapshot = false;      ///< taken because of the solver's `snapshot`

  int step() const { return state.outline.iter; }
  /// Whether both fit the binary format, which is limited to 2 GiB.
  bool fits_binary() const;
  /// The weights as a caffemodel.
  Result<std::string> model_bytes() const;
  /// The state as a solverstate.
  Result<std::string> state_bytes() const;
  /// Writes the weights to `model_path`, and the state, which refers to them, to `state_path`.
  Status write_model(const std::string& model_path, ModelFormat format) const;
  Status write_state(const std::string& state_path, const std::string& model_path,
                     ModelFormat format) const;
};

}  // namespace cafetiere
