// SPDX-License-Identifier: Apache-2.0
// The smooth L1 function (Girshick 2015): quadratic near 0, linear beyond 1 / sigma^2.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace cafetiere {

struct SmoothL1 {
  float square = 1;  ///< sigma^2

  /// Of element i: prediction minus target, times the weight in the third of three bottoms or more.
  template <class In>
  static float difference(const In& in, size_t bottoms, int64_t i) {
    return (bottoms > 2 ? in[2][i] : 1.F) * (in[0][i] - in[1][i]);
  }
  double value(double d) const {
    const double size = std::fabs(d);
    return size < 1 / double(square) ? 0.5 * square * d * d : size - 0.5 / double(square);
  }
  float slope(float d) const {
    return std::fabs(d) < 1 / square ? square * d : float((d > 0) - (d < 0));
  }
};

}  // namespace cafetiere
