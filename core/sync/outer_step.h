// SPDX-License-Identifier: Apache-2.0
// OuterStep: Nesterov's momentum on the mean of the replicas' moves.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace cafetiere {

/// Douillard et al., "DiLoCo" (arXiv 2311.08105): d = start - mean; v = momentum * v + d;
/// w = start - rate * (d + momentum * v).
class OuterStep {
 public:
  /// For `count` weights, with a velocity of 0.
  OuterStep(float rate, float momentum, size_t count)
      : rate_(rate), momentum_(momentum), velocity_(count, 0.f) {}

  /// Turns the first count values of `mean` into the weights after the step; the rest, statistics
  /// that have no gradient, stay the mean.
  void apply(std::span<const float> start, std::span<float> mean, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const float move = start[i] - mean[i];
      velocity_[i] = momentum_ * velocity_[i] + move;
      mean[i] = start[i] - rate_ * (move + momentum_ * velocity_[i]);
    }
  }

  std::vector<float>& velocity() { return velocity_; }
  const std::vector<float>& velocity() const { return velocity_; }

 private:
  float rate_, momentum_;
  std::vector<float> velocity_;
};

}  // namespace cafetiere
