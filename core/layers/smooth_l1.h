// SPDX-License-Identifier: Apache-2.0
// The smooth L1 function (Girshick 2015): quadratic near 0, linear beyond 1 / sigma^2.
#pragma once

#include <cmath>

namespace cafetiere {

struct SmoothL1 {
  float square = 1;  ///< sigma^2

  double value(double d) const {
    const double size = std::fabs(d);
    return size < 1 / double(square) ? 0.5 * square * d * d : size - 0.5 / double(square);
  }
  float slope(float d) const {
    return std::fabs(d) < 1 / square ? square * d : float((d > 0) - (d < 0));
  }
};

}  // namespace cafetiere
