// SPDX-License-Identifier: Apache-2.0
// exp, log, pow and cos of doubles, made of exactly rounded operations alone: libm's differ from one
// release to the next, and with them would a run's weights.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace cafetiere::elementary {

/// A polynomial by Horner's rule, the highest coefficient first. A call would keep loops from vectors.
template <class T, class... C>
[[gnu::always_inline]] inline T polynomial(T x, T sum, C... coefficients) {
  ((sum = std::fma(sum, x, coefficients)), ...);
  return sum;
}

namespace detail {

inline constexpr double kLn2High = 0x1.62e42fefa39efp-1, kLn2Low = 0x1.abc9e3b39803fp-56;
inline constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54;

/// x rounded to an integer, |x| < 2^51.
inline double nearest(double x) {
  constexpr double kRound = 0x1.8p52;
  return (x + kRound) - kRound;
}

/// 2^n for n in [-1022, 1023].
inline double power_of_two(int64_t n) { return std::bit_cast<double>((n + 1023) << 52); }

}  // namespace detail

/// e^x within 2 ulp; NaN for NaN.
inline double exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 710) return std::numeric_limits<double>::infinity();
  if (x < -746) return 0;
  // x = n ln 2 + r with |r| <= ln 2 / 2; the Taylor series to r^13 leaves out less than 1e-17 of it.
  const double n = detail::nearest(x * std::numbers::log2e);
  const double r = std::fma(n, -detail::kLn2Low, std::fma(n, -detail::kLn2High, x));
  const double q =
      polynomial(r, 1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880,
                 1. / 40320, 1. / 5040, 1. / 720, 1. / 120, 1. / 24, 1. / 6, 0.5);
  // In two halves, as 2^n itself may be no normal number.
  const int64_t half = static_cast<int64_t>(n) >> 1;
  return (std::fma(q, r * r, r) + 1) * detail::power_of_two(half) *
         detail::power_of_two(static_cast<int64_t>(n) - half);
}

/// The natural logarithm within 2 ulp; -infinity for 0, NaN for what is negative or NaN.
inline double log(double x) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (!(x > 0)) return x == 0 ? -kInfinity : std::numeric_limits<double>::quiet_NaN();
  if (x == kInfinity) return x;
  const bool subnormal = x < std::numeric_limits<double>::min();
  const int64_t bits = std::bit_cast<int64_t>(subnormal ? x * 0x1p54 : x);
  // x = 2^k (1 + f) with 1 + f in [1 / sqrt 2, sqrt 2); log(1 + f) = 2 artanh s, s = f / (2 + f), by
  // its series to s^23, and 2 s = f - s f.
  const int64_t k = (bits - std::bit_cast<int64_t>(std::numbers::sqrt2 / 2)) >> 52;
  const double f = std::bit_cast<double>(bits - (k << 52)) - 1;
  const double s = f / (2 + f), z = s * s;
  const double series = z * polynomial(z, 2. / 23, 2. / 21, 2. / 19, 2. / 17, 2. / 15, 2. / 13,
                                       2. / 11, 2. / 9, 2. / 7, 2. / 5, 2. / 3);
  const double exponent = static_cast<double>(subnormal ? k - 54 : k);
  return std::fma(exponent, detail::kLn2High,
                  f - std::fma(-exponent, detail::kLn2Low, s * (f - series)));
}

/// x^y, its relative error below (2 + |y log x|) 2^-52: far below that of a float. 1 where y is 0, NaN
/// where x is negative and y no integer, the sign of x where y is odd.
inline double pow(double x, double y) {
  if (y == 0) return 1;
  const bool integer = std::trunc(y) == y;
  if (x < 0 && !integer) return std::numeric_limits<double>::quiet_NaN();
  const double size = exp(y * log(std::fabs(x)));
  const bool odd = integer && std::fabs(y) < 0x1p53 && std::fmod(y, 2) != 0;
  return odd ? std::copysign(size, x) : size;
}

/// The cosine, its error below 2^-52, of |x| <= 1e5; NaN beyond.
inline double cos(double x) {
  if (!(std::fabs(x) <= 1e5)) return std::numeric_limits<double>::quiet_NaN();
  const double n = detail::nearest(x / detail::kHalfPiHigh);
  const double r = std::fma(n, -detail::kHalfPiLow, std::fma(n, -detail::kHalfPiHigh, x));
  const double z = r * r;
  const double cosine = polynomial(z, 1. / 20922789888000, -1. / 87178291200, 1. / 479001600,
                                   -1. / 3628800, 1. / 40320, -1. / 720, 1. / 24, -0.5, 1.);
  const double sine =
      r * polynomial(z, 1. / 355687428096000, -1. / 1307674368000, 1. / 6227020800, -1. / 39916800,
                     1. / 362880, -1. / 5040, 1. / 120, -1. / 6, 1.);
  switch (static_cast<int64_t>(n) & 3) {
    case 0:
      return cosine;
    case 1:
      return -sine;
    case 2:
      return -cosine;
    default:
      return sine;
  }
}

}  // namespace cafetiere::elementary
