// SPDX-License-Identifier: Apache-2.0
// ModeState: what a mode keeps beside the weights, read in pieces from where it is stored.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/comm/group.h"
#include "core/model/solver_state.h"

namespace cafetiere {

/// One flat array per kind of history value.
using HistoryArenas = std::vector<std::vector<float>>;

/// The arrays of a mode, each laid out as the net's parameters are. StateArray::kHistory is the
/// solver's history in the form that Caffe reads.
struct ModeState {
  virtual ~ModeState() = default;
  /// Floats [begin, begin + out.size()) of an array.
  virtual Status read(const StateArray& array, size_t begin, std::span<float> out) = 0;

  std::string mode = {};  ///< the mode that owns what is beside the history; "" = none
  size_t kinds = 0;       ///< arrays of history
  size_t replicas = 0;    ///< shards, or teams, that have `kinds` arrays of their own
  size_t outer = 0;       ///< arrays of the outer step; or error feedback of compression
  int began = 0;          ///< the iteration that began with a history of zeros
};

/// History in memory, and nothing else.
struct HeldHistory final : ModeState {
  explicit HeldHistory(HistoryArenas history, std::string mode = "");
  Status read(const StateArray& array, size_t begin, std::span<float> out) override;

 private:
  const HistoryArenas history_;
};

/// History of zeros, of a rank that begins with iteration `first`.
struct NoHistory final : ModeState {
  NoHistory(size_t kinds, int first);
  Status read(const StateArray& array, size_t begin, std::span<float> out) override;
};

/// Floats [begin, end) of an array, on the rank that stores them.
struct StatePart {
  int rank = 0;
  size_t begin = 0, end = 0;
  const float* values = nullptr;  ///< only on that rank
};
/// An array in parts; floats that none covers are 0.
using StateParts = std::vector<StatePart>;

/// Where the arrays of a mode are stored. Rank 0 knows all parts, the others at least their own.
struct PlacedState {
  std::string mode = {};
  std::vector<StateParts> history = {};
  std::vector<std::vector<StateParts>> replicas = {};
  std::vector<StateParts> outer = {};
};

/// What to do with a state.
using StateUse = std::function<Status(ModeState&)>;

/// Calls `use` on rank 0, with the arrays of all ranks: a piece is sent when it is read. Every rank
/// calls it and returns when rank 0 is done; an error of `use` reaches the others as kUnavailable.
Status show_placed(Group* group, const PlacedState& placed, const StateUse& use);

}  // namespace cafetiere
