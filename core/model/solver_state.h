// SPDX-License-Identifier: Apache-2.0
// SolverState: what a solver needs besides the weights to go on, as .solverstate files.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/model/weights.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// One blob of a solver's history.
struct HistoryBlob {
  Shape shape;
  std::vector<float> values;

  bool operator==(const HistoryBlob&) const = default;
};

/// What a training with several replicas keeps beside the weights: flat arrays, laid out as the net's
/// parameters are. Other readers of the files skip it.
struct ReplicaHistory {
  std::string mode;                                       ///< which mode kept it; "" = nothing
  std::vector<std::vector<std::vector<float>>> replicas;  ///< by shard and kind
  std::vector<std::vector<float>> outer;                  ///< what else the mode keeps

  bool operator==(const ReplicaHistory&) const = default;
};

/// A solver between two iterations. History is in the order of the learnable parameters, all first
/// kinds before all second ones.
struct SolverState {
  int iter = 0;
  std::string learned_net;  ///< path of the weights that belong to it
  int current_step = 0;     ///< of the multistep learning rate policy
  std::vector<HistoryBlob> history;
  ReplicaHistory sync = {};

  bool operator==(const SolverState&) const = default;
};

/// A state from bytes of either form, told apart by content.
Result<SolverState> parse_solver_state(std::span<const std::byte> bytes);
/// A state from a file; errors name it, "File not found: F" when there is none.
Result<SolverState> read_solver_state(const std::string& path);

/// The bytes of a state; the binary form has at most kMaxFileBytes.
Result<std::string> serialize_solver_state(const SolverState& state, ModelFormat format);
/// Writes a state to a file, aside and renamed; HDF5 as it goes, of any size.
Status write_solver_state(const SolverState& state, const std::string& path, ModelFormat format);

}  // namespace cafetiere
