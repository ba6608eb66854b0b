// SPDX-License-Identifier: Apache-2.0
#include "core/train/posterior_weights.h"

#include <algorithm>
#include <numeric>

#include "core/base/elementary.h"

namespace cafetiere {
namespace {

/// What a value's own row gains by having been fitted to the value's rows, as a logarithm.
constexpr double kOwnGain = 2;
constexpr double kLeastShare = 1e-12;

/// Turns logarithms into shares of their sum.
void normalize(std::span<double> logs) {
  const double most = std::ranges::max(logs);
  double sum = 0;
  for (double& w : logs) sum += w = elementary::exp(w - most);
  for (double& w : logs) w /= sum;
}

}  // namespace

std::vector<double> posterior_weights(const Candidates& c, std::span<const float> likelihood) {
  constexpr int kRounds = 10;
  const auto width = size_t(c.per_value()), nearest = size_t(c.nearest);
  const double own = -kOwnGain - elementary::log(double(c.values));
  std::vector<double> weights(likelihood.size());
  std::vector<double> share(size_t(c.prototypes), 1 / double(c.prototypes));
  for (int round = 0; round <= kRounds; ++round) {
    std::vector<double> next(share.size(), 0);
    for (size_t v = 0; v < size_t(c.values); ++v) {
      const std::span<double> of_value(weights.data() + v * width, width);
      const auto prototype = std::span(c.near).subspan(v * nearest, nearest);
      for (size_t i = 0; i < width; ++i) {
        const double prior =
            i < nearest ? elementary::log(share[size_t(prototype[i])] + kLeastShare) : own;
        of_value[i] = double(likelihood[v * width + i]) + prior;
      }
      normalize(of_value);
      for (size_t i = 0; i < nearest; ++i) next[size_t(prototype[i])] += of_value[i];
    }
    const double all = std::accumulate(next.begin(), next.end(), 0.0);
    if (all > 0) std::ranges::transform(next, share.begin(), [&](double n) { return n / all; });
  }
  return weights;
}

}  // namespace cafetiere
