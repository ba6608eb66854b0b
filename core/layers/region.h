// SPDX-License-Identifier: Apache-2.0
// Regions of interest as rows of a blob, and their division into bins for pooling.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/base/status.h"
#include "core/layers/indices.h"
#include "core/tensor/shape.h"

namespace cafetiere {

inline constexpr int64_t kRegionValues = 5;  ///< image, x1, y1, x2, y2

/// Rejects a blob that is not rows of regions.
inline Status check_regions(const Shape& regions) {
  if (regions.axes() >= 1 && regions.count() == regions[0] * kRegionValues) return {};
  return invalid_argument(
      "needs regions (R, 5) of image, x1, y1, x2, y2 as the second bottom, not " + regions.str());
}

/// Pixels [begin, end) of one axis of a map.
struct Span {
  int64_t begin, end;
  bool empty() const { return end <= begin; }
};

/// Clamps a coordinate so that it converts to an integer, even if it is NaN or infinite.
inline float bounded(float coordinate) {
  constexpr float kFar = 1 << 24;
  return std::isnan(coordinate) ? 0.F : std::clamp(coordinate, -kFar, kFar);
}

/// [begin, end) clipped to an axis of `map` pixels.
inline Span cut(int64_t begin, int64_t end, int64_t map) {
  return {std::clamp<int64_t>(begin, 0, map), std::clamp<int64_t>(end, 0, map)};
}

}  // namespace cafetiere
