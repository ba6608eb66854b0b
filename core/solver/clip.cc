// SPDX-License-Identifier: Apache-2.0
#include "core/solver/clip.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <vector>

namespace cafetiere {
namespace {

constexpr size_t kLanes = 8;  // independent partial sums, so that the loop vectorises

}  // namespace

double square_sum(std::span<const float> block) {
  std::array<double, kLanes> lanes{};
  const size_t whole = block.size() - block.size() % kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double x = block[i + lane];
      lanes[lane] += x * x;
    }
  }
  for (size_t i = whole; i < block.size(); ++i) {
    const double x = block[i];
    lanes[i - whole] += x * x;
  }
  return tree_sum(lanes);
}

void block_square_sums(std::span<const float> values, std::span<double> sums) {
  for (size_t b = 0; b < sums.size(); ++b) {
    const size_t begin = b * kNormBlock;
    sums[b] = square_sum(values.subspan(begin, std::min(kNormBlock, values.size() - begin)));
  }
}

double tree_sum(std::span<const double> terms) {
  if (terms.empty()) return 0;
  if (terms.size() == 1) return terms[0];
  const size_t left = std::bit_floor(terms.size() - 1);
  return tree_sum(terms.first(left)) + tree_sum(terms.subspan(left));
}

double shard_sum(std::span<const double> values, int shards, int which) {
  const size_t of_shard = values.size() / size_t(shards);
  std::vector<double> terms;
  for (size_t s = 0; s < size_t(shards); ++s) terms.push_back(values[s * of_shard + size_t(which)]);
  return tree_sum(terms);
}

float clip_factor(double norm_sq, float clip) {
  if (clip < 0) return 1;
  const auto norm = static_cast<float>(std::sqrt(norm_sq));
  return norm > clip ? clip / norm : 1;
}

}  // namespace cafetiere
