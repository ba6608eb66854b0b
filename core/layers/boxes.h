// SPDX-License-Identifier: Apache-2.0
// Sorting of boxes by score, and non-maximum suppression.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/base/box.h"

namespace cafetiere {

/// Indices in descending order of score, ties in index order; at most `most` of them unless it is
/// negative. NaN scores come last.
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

/// Parameters of non-maximum suppression.
struct Suppression {
  float threshold = 0.3F;
  float eta = 1;      ///< if below 1, multiplies the threshold after each kept box while it is
                      ///< above 0.5
  float edge = 0;     ///< see area()
  bool equal = true;  ///< whether to keep a box whose overlap equals the threshold
  int64_t most = -1;  ///< maximum number of boxes kept; -1: no limit
};

/// Non-maximum suppression: the boxes of `order` that overlap no kept one by more than the
/// threshold.
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
