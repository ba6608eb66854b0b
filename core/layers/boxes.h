// SPDX-License-Identifier: Apache-2.0
// The order of boxes by score, and non-maximum suppression.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/base/box.h"

namespace cafetiere {

/// Places by falling score, the earlier one of equals first; at most `most` if it is not negative.
/// A score that is not a number comes last.
inline std::vector<int> by_score(const std::vector<float>& scores, int64_t most = -1) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int a, int b) {
    const float x = scores[size_t(a)], y = scores[size_t(b)];
    return x > y || (x == x && y != y);
  });
  if (most >= 0 && size_t(most) < order.size()) order.resize(size_t(most));
  return order;
}

/// How overlapping boxes are dropped.
struct Suppression {
  float threshold = 0.3F;
  float eta = 1;      ///< below 1, the threshold falls by it with each box kept, down to 0.5
  float edge = 0;     ///< of `area`
  bool equal = true;  ///< whether an overlap equal to the threshold is kept
  int64_t most = -1;  ///< boxes that are kept; -1: any number
};

/// The boxes of `order` that remain: none overlaps an earlier one by more than the threshold.
inline std::vector<int> suppress(const std::vector<Box>& boxes, const std::vector<int>& order,
                                 const Suppression& rule) {
  std::vector<int> kept;
  float threshold = rule.threshold;
  for (const int candidate : order) {
    if (rule.most >= 0 && int64_t(kept.size()) >= rule.most) break;
    const bool free = std::ranges::all_of(kept, [&](int k) {
      const float with = overlap(boxes[size_t(candidate)], boxes[size_t(k)], rule.edge);
      return with < threshold || (rule.equal && with == threshold);
    });
    if (!free) continue;
    kept.push_back(candidate);
    if (rule.eta < 1 && threshold > 0.5F) threshold *= rule.eta;
  }
  return kept;
}

}  // namespace cafetiere
