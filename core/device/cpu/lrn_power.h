// SPDX-License-Identifier: Apache-2.0
// s^-beta of local response normalisation, for use in loops.
#pragma once

#include "core/device/vector_math.h"

namespace cafetiere {

/// s^-beta, and 1 / s computed from s and s^-beta.
struct AnyPower {
  float beta;
  float operator()(float s) const { return vec::pow(s, -beta); }
  static float inverse(float s, float) { return 1 / s; }
};
/// Caffe's default 0.75, without roots and divisions: s^-0.75 s s^-0.75 is the square root of 1 /
/// s.
struct UsualPower {
  float operator()(float s) const { return vec::pow_minus_three_quarters(s); }
  static float inverse(float s, float power) {
    const float root = power * (s * power);
    return root * root;
  }
};

/// Calls f with the implementation for this beta, so that loops with Caffe's default vectorize.
template <class F>
void with_power(float beta, const F& f) {
  if (beta == 0.75F) return f(UsualPower());
  f(AnyPower{beta});
}

}  // namespace cafetiere
