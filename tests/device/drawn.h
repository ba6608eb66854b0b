// SPDX-License-Identifier: Apache-2.0
// Random operands of kernels.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

namespace cafetiere {

/// Normally distributed numbers.
inline std::vector<float> drawn(int64_t count, unsigned seed, float deviation = 1) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  std::vector<float> numbers(static_cast<size_t>(count));
  for (float& n : numbers) n = normal(random);
  return numbers;
}

}  // namespace cafetiere
