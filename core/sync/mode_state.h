// SPDX-License-Identifier: Apache-2.0
// ModeState: what a mode keeps beside the weights, read a piece at a time from where it lies.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/comm/group.h"
#include "core/model/solver_state.h"

namespace cafetiere {

/// One flat array a kind of history value.
using HistoryArenas = std::vector<std::vector<float>>;

/// The arrays of a mode, each laid out as the net's parameters are. StateArray::kHistory is the
/// solver's history in the form that Caffe reads.
struct ModeState {
  virtual ~ModeState() = default;
  /// Floats [begin, begin + out.size()) of an array.
  virtual Status read(const StateArray& array, size_t begin, std::span<float> out) = 0;

  std::string mode = {};  ///< which mode keeps what is beside the history; "" = none does
  size_t kinds = 0;       ///< arrays of history
  size_t replicas = 0;    ///< shards that have `kinds` arrays of their own
  size_t outer = 0;       ///< of the step on the replicas' mean; or what compression left out
};

/// History in memory, and nothing else.
struct HeldHistory final : ModeState {
  explicit HeldHistory(HistoryArenas history, std::string mode = "");
  Status read(const StateArray& array, size_t begin, std::span<float> out) override;

 private:
  const HistoryArenas history_;
};

/// Floats [begin, end) of an array, on the rank that keeps them.
struct StatePart {
  int rank = 0;
  size_t begin = 0, end = 0;
  const float* values = nullptr;  ///< of the rank itself
};
/// An array in parts; what none covers is 0.
using StateParts = std::vector<StatePart>;

/// Where the arrays of a mode lie. Rank 0 knows all parts, the other ranks at least their own.
struct PlacedState {
  std::string mode = {};
  std::vector<StateParts> history = {};
  std::vector<std::vector<StateParts>> replicas = {};
  std::vector<StateParts> outer = {};
};

/// What is done with a state.
using StateUse = std::function<Status(ModeState&)>;

/// Calls `use` on rank 0, with the arrays of all ranks: a piece travels when it is read. Every rank
/// calls it and returns when rank 0 is done; an error of `use` reaches the others as kUnavailable.
Status show_placed(Group* group, const PlacedState& placed, const StateUse& use);

}  // namespace cafetiere
