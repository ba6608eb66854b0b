// SPDX-License-Identifier: Apache-2.0
// Boxes of objects, and how much two of them have in common.
#pragma once

#include <algorithm>

namespace cafetiere {

struct Box {
  float x1, y1, x2, y2;
  float width() const { return x2 - x1; }
  float height() const { return y2 - y1; }
};

/// The area of a box whose sides are `edge` longer than its coordinates say; 0 if it is inverted.
inline float area(const Box& b, float edge = 0) {
  return std::max(b.width() + edge, 0.F) * std::max(b.height() + edge, 0.F);
}

/// What two boxes have in common; inverted if nothing.
inline Box common(const Box& a, const Box& b) {
  return {std::max(a.x1, b.x1), std::max(a.y1, b.y1), std::min(a.x2, b.x2), std::min(a.y2, b.y2)};
}

/// Intersection over union (Jaccard).
inline float overlap(const Box& a, const Box& b, float edge = 0) {
  const float both = area(common(a, b), edge);
  const float all = area(a, edge) + area(b, edge) - both;
  return both > 0 && all > 0 ? both / all : 0;
}

}  // namespace cafetiere
