// SPDX-License-Identifier: Apache-2.0
// Checkpoint: weights and state after a step, and the formats in which they are stored.
#pragma once

#include <span>
#include <string>

#include "core/graph/graph.h"
#include "core/model/solver_state.h"

namespace cafetiere {

/// Not yet in a file format: the one who stores it chooses. Valid during the call that receives it.
struct Checkpoint {
  const Graph& graph;
  std::span<const float> weights;
  std::span<const float> moved;  ///< with snapshot_diff: what the last update subtracted
  StateSource& state;            ///< read as it is stored
  bool is_snapshot = false;      ///< the solver's `snapshot` asks for it

  int step() const { return state.outline.iter; }
  /// Whether both fit the binary format, which is limited to 2 GiB.
  bool fits_binary() const;
  /// As a caffemodel.
  Result<std::string> model_bytes() const;
  /// As a solverstate.
  Result<std::string> state_bytes() const;
  /// Writes the weights to `model_path`, and the state, which names them, to `state_path`.
  Status write_model(const std::string& model_path, ModelFormat format) const;
  Status write_state(const std::string& state_path, const std::string& model_path,
                     ModelFormat format) const;
};

}  // namespace cafetiere
