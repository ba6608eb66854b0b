// SPDX-License-Identifier: Apache-2.0
// SolverState: what a solver needs besides the weights to go on, as .solverstate files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
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

/// What early stopping has seen: (iteration, value) of each test, and the weights of the best, laid out as
/// the net's parameters are. Kept in the binary form alone.
struct StoppingTests {
  std::vector<std::pair<int, double>> curve;
  std::vector<float> best;

  bool operator==(const StoppingTests&) const = default;
};

/// A solver between two iterations. History is in the order of the learnable parameters, all first
/// kinds before all second ones.
struct SolverState {
  int iter = 0;
  std::string learned_net;  ///< path of the weights that belong to it
  int current_step = 0;     ///< of the multistep learning rate policy
  std::vector<HistoryBlob> history;
  ReplicaHistory sync = {};
  StoppingTests stopping = {};

  bool operator==(const SolverState&) const = default;
};

/// Names one of a state's arrays of numbers.
struct StateArray {
  enum Kind : uint32_t { kHistory, kReplica, kOuter };
  Kind kind = kHistory;
  size_t index = 0;  ///< among those of its kind or, of kReplica, among those of its shard
  size_t shard = 0;
};

/// What a state holds but its numbers.
struct StateOutline {
  int iter = 0;
  std::string learned_net = {};
  int current_step = 0;
  std::vector<Shape> history = {};
  std::string mode = {};
  std::vector<std::vector<size_t>> replicas = {};  ///< floats of each array, by shard and kind
  std::vector<size_t> outer = {};                  ///< the same
  StoppingTests stopping = {};                     ///< all of it
};

/// A state whose numbers are read a piece at a time, from where they lie: so that one of any size is
/// stored and taken up again with little memory.
class StateSource {
 public:
  virtual ~StateSource() = default;
  /// Floats [begin, begin + out.size()) of an array that the outline names.
  virtual Status read(const StateArray& array, size_t begin, std::span<float> out) = 0;

  StateOutline outline;
};

/// A state in memory.
std::unique_ptr<StateSource> source_of(SolverState state);
/// All of a state, into memory.
Result<SolverState> whole_state(StateSource& source);

/// A state's file of either form: HDF5 is read from disk as needed. Errors name the file, "File not
/// found: F" when there is none.
Result<std::unique_ptr<StateSource>> open_solver_state(const std::string& path);
/// A state from bytes of either form, told apart by content.
Result<SolverState> parse_solver_state(std::span<const std::byte> bytes);

/// At most how many bytes the binary form of a state takes.
size_t binary_bytes(const StateOutline& outline);

/// The bytes of a state; the binary form has at most kMaxFileBytes.
Result<std::string> serialize_solver_state(StateSource& state, ModelFormat format);
Result<std::string> serialize_solver_state(const SolverState& state, ModelFormat format);
/// Writes a state to a file, aside and renamed; HDF5 piece by piece, of any size.
Status write_solver_state(StateSource& state, const std::string& path, ModelFormat format);

}  // namespace cafetiere
