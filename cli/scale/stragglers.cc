// SPDX-License-Identifier: Apache-2.0
#include "cli/scale/stragglers.h"

#include <cmath>
#include <numbers>

namespace cafetiere {

double mean_of_slowest(int ranks, double spread) {
  constexpr double kEnd = 12, kStep = 1.0 / 256;
  double sum = 0;
  for (double z = -kEnd; z <= kEnd + spread; z += kStep) {
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
    sum += std::exp(spread * z) * ranks * density * std::pow(below, ranks - 1);
  }
  return sum * kStep;
}

double spread_of_sum(double spread, int count) {
  return std::sqrt(std::log1p(std::expm1(spread * spread) / count));
}

}  // namespace cafetiere
