// SPDX-License-Identifier: Apache-2.0
// Elementary functions for element-wise loops: branch-free, so that the compiler makes vector code of
// them, and made of exactly rounded operations alone, so that a lane and a scalar, one machine and
// another, give the same bits.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace cafetiere::vec {

/// A polynomial by Horner's rule, the highest coefficient first.
template <class... C>
float polynomial(float x, float sum, C... coefficients) {
  ((sum = std::fma(sum, x, coefficients)), ...);
  return sum;
}

namespace detail {

/// e^x = 2^n (1 + p).
struct Reduced {
  int32_t n;
  float p;
};

/// x = n ln 2 + r with |r| <= ln 2 / 2, ln 2 being taken in two parts (Cody & Waite 1980);
/// p = e^r - 1 is the Taylor series to r^7, which leaves out less than 2e-8 of it.
inline Reduced reduce(float x) {
  constexpr float kRound = 12582912.F;  // 1.5 * 2^23: the sum's low bits are the nearest integer
  const float shifted = std::fma(x, 1.44269504F, kRound);
  const float n = shifted - kRound;
  const float r = std::fma(n, 2.12194440e-4F, std::fma(n, -0.693359375F, x));
  const float q = polynomial(r, 1.F / 5040, 1.F / 720, 1.F / 120, 1.F / 24, 1.F / 6, 0.5F);
  return {std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound), std::fma(q, r * r, r)};
}

/// 2^n for n in [-126, 127].
inline float power_of_two(int32_t n) { return std::bit_cast<float>((n + 127) << 23); }

}  // namespace detail

/// e^x within 2 ulp; 0 below -104, infinity from 88.73 on, NaN for NaN.
inline float exp(float x) {
  const float upper = 89.F < x ? 89.F : x;
  const auto [n, p] = detail::reduce(-104.F > upper ? -104.F : upper);
  // In two halves, as 2^n itself may be no normal number.
  const int32_t half = n >> 1;
  return (p + 1) * detail::power_of_two(half) * detail::power_of_two(n - half);
}

/// e^x - 1 within 2 ulp, near 0 too.
inline float expm1(float x) {
  const float upper = 89.F < x ? 89.F : x;
  const auto [n, p] = detail::reduce(-30.F > upper ? -30.F : upper);
  const float half = detail::power_of_two(n - 1);
  return 2 * std::fma(half, p, half - 0.5F);
}

/// 1 / (1 + e^-x) within 3 ulp; 0 below -88.73.
inline float sigmoid(float x) { return 1 / (1 + exp(-x)); }

/// tanh x within 3 ulp, near 0 too.
inline float tanh(float x) {
  const float e = expm1(-2 * std::fabs(x));
  return std::copysign(e / (2 + e), x);
}

}  // namespace cafetiere::vec
