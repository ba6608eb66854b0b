// SPDX-License-Identifier: Apache-2.0
// Elementary functions for element-wise loops: branch-free, so that the compiler vectorizes them,
// and composed of exactly rounded operations only, so that vectors and scalars give bitwise the
// same results on all machines.
#pragma once

#include <bit>
#include <cfloat>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "core/base/elementary.h"

namespace cafetiere::vec {

using elementary::polynomial;

namespace detail {

/// e^x = 2^n (1 + p).
struct Reduced {
  int32_t n;
  float p;
};

/// x = n ln 2 + r with |r| <= ln 2 / 2, with ln 2 split in two parts (Cody & Waite 1980); p = e^r -
/// 1 is the Taylor series up to r^7, with a truncation error below 2e-8.
inline Reduced reduce(float x) {
  constexpr float kRound = 12582912.F;  // 1.5 * 2^23: the low bits of the sum are the nearest
                                        // integer
  const float shifted = std::fma(x, 1.44269504F, kRound);
  const float n = shifted - kRound;
  const float r = std::fma(n, 2.12194440e-4F, std::fma(n, -0.693359375F, x));
  const float q = polynomial(r, 1.F / 5040, 1.F / 720, 1.F / 120, 1.F / 24, 1.F / 6, 0.5F);
  return {std::bit_cast<int32_t>(shifted) - std::bit_cast<int32_t>(kRound), std::fma(q, r * r, r)};
}

/// 2^n for n in [-126, 127].
inline float power_of_two(int32_t n) { return std::bit_cast<float>((n + 127) << 23); }

}  // namespace detail

/// e^x within 2 ulp; 0 below -104, infinity from 88.73, NaN for NaN.
inline float exp(float x) {
  const float upper = 89.F < x ? 89.F : x;
  const auto [n, p] = detail::reduce(-104.F > upper ? -104.F : upper);
  // In two factors, since 2^n itself may not be a normal number.
  const int32_t half = n >> 1;
  return (p + 1) * detail::power_of_two(half) * detail::power_of_two(n - half);
}

/// e^x - 1 within 2 ulp, also near 0.
inline float expm1(float x) {
  const float upper = 89.F < x ? 89.F : x;
  const auto [n, p] = detail::reduce(-30.F > upper ? -30.F : upper);
  const float half = detail::power_of_two(n - 1);
  return 2 * std::fma(half, p, half - 0.5F);
}

/// 1 / (1 + e^-x) within 3 ulp; 0 below -88.73.
inline float sigmoid(float x) { return 1 / (1 + exp(-x)); }

/// tanh x within 3 ulp, also near 0.
inline float tanh(float x) {
  const float e = expm1(-2 * std::fabs(x));
  return std::copysign(e / (2 + e), x);
}

/// The natural logarithm within 2 ulp; -infinity for 0, NaN for negative numbers and NaN.
inline float log(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const bool subnormal = x < FLT_MIN;
  const int32_t bits = std::bit_cast<int32_t>(subnormal ? x * 0x1p23F : x);
  // x = 2^k (1 + f) with 1 + f in [1 / sqrt 2, sqrt 2); log(1 + f) = 2 artanh s with s = f / (2 +
  // f), from its series up to s^9 and 2 s = f - s f.
  const int32_t k = (bits - std::bit_cast<int32_t>(std::numbers::sqrt2_v<float> / 2)) >> 23;
  const float f = std::bit_cast<float>(bits - (k << 23)) - 1;
  const float s = f / (2 + f), z = s * s;
  const float series = z * polynomial(z, 2.F / 9, 2.F / 7, 2.F / 5, 2.F / 3);
  const float n = static_cast<float>(subnormal ? k - 23 : k);
  const float y = std::fma(n, 0.693359375F, f - std::fma(n, 2.12194440e-4F, s * (f - series)));
  const float rest = x == 0 ? -kInfinity : std::numeric_limits<float>::quiet_NaN();
  return x > 0 ? (x < kInfinity ? y : x) : rest;
}

/// log(1 + w) for w in [0, 1], with a relative error below 3e-7: 2 artanh(w / (2 + w)), the series
/// up to the 15th power.
inline float log1p_of_fraction(float w) {
  const float z = w / (2 + w), s = z * z;
  return 2 * z *
         polynomial(s, 1.F / 15, 1.F / 13, 1.F / 11, 1.F / 9, 1.F / 7, 1.F / 5, 1.F / 3, 1.F);
}

/// x^y within 1 ulp; not vectorized, because it computes in double. See elementary::pow.
inline float pow(float x, float y) { return static_cast<float>(elementary::pow(x, y)); }

/// x^-0.75 within 2 ulp; infinity for values below the least normal number, NaN for negative ones.
/// The initial guess, within 5 %, is linear in the bits of x; each of two iterations then reduces
/// the error d of y^4 = x^-3 to the order of d^3.
inline float pow_minus_three_quarters(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  float y = std::bit_cast<float>(0x6f14e98b - (bits - (bits >> 2)));
  for (int i = 0; i < 2; ++i) {
    const float a = x * y, d = std::fma(-(a * a), a * y, 1.F);
    y = std::fma(y, d * std::fma(d, 5.F / 32, 0.25F), y);
  }
  const float tiny =
      x >= 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  const float rest = x > 1 ? 0.F : tiny;
  return x >= FLT_MIN && x <= FLT_MAX ? y : rest;
}

}  // namespace cafetiere::vec
