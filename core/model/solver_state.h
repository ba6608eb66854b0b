// SPDX-License-Identifier: Apache-2.0
// SolverState: what a solver needs besides the weights to resume, as in .solverstate files.
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

/// A blob of a solver's history.
struct HistoryBlob {
  Shape shape;
  std::vector<float> values;

  bool operator==(const HistoryBlob&) const = default;
};

/// State that training with several replicas keeps besides the weights: flat arrays in the layout
/// of the net's parameters. Other readers of the files skip it.
struct ReplicaHistory {
  std::string mode;                                       ///< the mode it belongs to; "" = none
  std::vector<std::vector<std::vector<float>>> replicas;  ///< by shard and kind
  std::vector<std::vector<float>> outer;                  ///< other state of the mode

  bool operator==(const ReplicaHistory&) const = default;
};

/// The tests seen by early stopping, as (iteration, value), and the weights of the best, in the
/// layout of the net's parameters.
struct StoppingTests {
  std::vector<std::pair<int, double>> curve;
  std::vector<float> best;

  bool operator==(const StoppingTests&) const = default;
};

/// A solver between two iterations. History is in the order of the learnable parameters, all first
/// kinds before all second ones.
struct SolverState {
  int iter = 0;
  std::string learned_net;  ///< path of the corresponding weights
  int current_step = 0;     ///< of the multistep learning rate policy
  std::vector<HistoryBlob> history;
  ReplicaHistory sync = {};
  StoppingTests stopping = {};
  std::string precision = {};  ///< in which it was computed; "" = float32

  bool operator==(const SolverState&) const = default;
};

/// Identifies one of a state's arrays.
struct StateArray {
  enum Kind : uint32_t { kHistory, kReplica, kOuter };
  Kind kind = kHistory;
  size_t index = 0;  ///< within its kind or, for kReplica, within its shard
  size_t shard = 0;
};

/// A state without the values of its arrays.
struct StateOutline {
  int iter = 0;
  std::string learned_net = {};
  int current_step = 0;
  std::vector<Shape> history = {};
  std::string mode = {};
  std::vector<std::vector<size_t>> replicas = {};  ///< number of floats of each array, by shard and
                                                   ///< kind
  std::vector<size_t> outer = {};                  ///< likewise
  StoppingTests stopping = {};                     ///< complete
  std::string precision = {};
};

/// A state whose arrays are read piece by piece from where they are stored, so that a state of any
/// size can be stored and restored with little memory.
class StateSource {
 public:
  virtual ~StateSource() = default;
  /// Reads floats [begin, begin + out.size()) of an array in the outline.
  virtual Status read(const StateArray& array, size_t begin, std::span<float> out) = 0;

  StateOutline outline;
};

/// A StateSource for a state in memory.
std::unique_ptr<StateSource> source_of(SolverState state);
/// Reads the whole state into memory.
Result<SolverState> whole_state(StateSource& source);

/// Opens a state file of either form; HDF5 is read from disk as needed. Errors name the file; "File
/// not found: F" if it does not exist.
Result<std::unique_ptr<StateSource>> open_solver_state(const std::string& path);
/// A state from bytes of either form, which is detected from the content.
Result<SolverState> parse_solver_state(std::span<const std::byte> bytes);

/// An upper bound on the size in bytes of a state in binary form.
size_t binary_bytes(const StateOutline& outline);

/// The bytes of a state; the binary form has at most kMaxFileBytes.
Result<std::string> serialize_solver_state(StateSource& state, ModelFormat format);
Result<std::string> serialize_solver_state(const SolverState& state, ModelFormat format);
/// Writes a state to a temporary file that is renamed; HDF5 piece by piece, of any size.
Status write_solver_state(StateSource& state, const std::string& path, ModelFormat format);

}  // namespace cafetiere
