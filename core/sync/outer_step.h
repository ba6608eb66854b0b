// SPDX-License-Identifier: Apache-2.0
// OuterStep: DiLoCo's update, Nesterov momentum on the mean of the replicas' deltas.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "core/sync/sync.h"

namespace cafetiere {

/// Douillard et al., "DiLoCo" (arXiv 2311.08105): d = start - mean; v = momentum * v + d;
/// w = start - rate * (d + momentum * v). For a slice of the arena.
class OuterStep {
 public:
  /// For floats [begin, end) of an arena whose first `learned` floats have gradients; the velocity
  /// is 0.
  OuterStep(const caffe::SyncParameter& sync, size_t begin, size_t end, size_t learned);

  /// Turns the slice's `mean` into the weights after the step. Statistics, which have no gradient,
  /// stay the mean. `start`: the slice when the round began.
  void apply(std::span<const float> start, std::span<float> mean);

  /// Where the velocity of an arena of `floats` is stored: an even slice on each rank.
  StateParts placed(const Group* group, size_t floats) const;
  /// Restores the velocity from a state of DiLoCo, or of "auto" that chose it.
  Status restore(ModeState& state);

 private:
  float rate_, momentum_;
  size_t begin_;
  std::vector<float> velocity_;  // of the slice
  size_t learned_;               // floats at the slice's front
};

/// The outer step of the mode that `sync` names; none where replicas take the plain mean.
std::optional<OuterStep> outer_step_of(const caffe::SyncParameter& sync, size_t begin, size_t end,
                                       size_t learned);

}  // namespace cafetiere
