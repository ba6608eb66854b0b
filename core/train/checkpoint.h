// SPDX-License-Identifier: Apache-2.0
// Checkpoint: weights and state after a step, and the forms that they are stored in.
#pragma once

#include <span>
#include <string>

#include "core/graph/graph.h"
#include "core/model/solver_state.h"

namespace cafetiere {

/// Not yet in any file's form: whoever stores it makes the one that is wanted. Valid during the call
/// that it is given to.
struct Checkpoint {
  const Graph& graph;
  std::span<const float> weights;
  std::span<const float> moved;  ///< with snapshot_diff: by how much the last update moved them
  StateSource& state;            ///< read as it is stored

  int step() const { return state.outline.iter; }
  /// Whether both take the binary form, which has at most 2 GiB.
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
