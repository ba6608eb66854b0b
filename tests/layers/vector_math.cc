// SPDX-License-Identifier: Apache-2.0
// The elementary functions against double precision, in units of the last place.
#include "core/device/vector_math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace cafetiere {
namespace {

/// The error of `value` in units of the last place of a float near `expected`.
double ulps(float value, double expected) {
  int exponent = 0;
  std::frexp(expected, &exponent);
  return std::fabs(value - expected) / std::ldexp(1.0, std::max(exponent - 24, -149));
}

/// The largest error over [from, to] and, next to 0, over all magnitudes.
template <class F, class G>
double worst(float from, float to, F f, G exact) {
  double largest = 0;
  const auto look = [&](float x) { largest = std::max(largest, ulps(f(x), exact(double(x)))); };
  constexpr int kPoints = 200000;
  for (int i = 0; i <= kPoints; ++i) look(from + (to - from) * float(i) / kPoints);
  for (float x = 1; x > 1e-30F; x *= 0.93F) look(x), look(-x);
  return largest;
}

TEST(VectorMath, ErrorsAreAsStated) {
  const auto power = [](float x) { return vec::pow_minus_three_quarters(std::fabs(x)); };
  EXPECT_LE(worst(1e-3F, 100, power, [](double x) { return std::pow(std::fabs(x), -0.75); }), 2);
  EXPECT_LE(worst(-103, 88.7F, vec::exp, [](double x) { return std::exp(x); }), 2);
  EXPECT_LE(worst(-40, 88.7F, vec::expm1, [](double x) { return std::expm1(x); }), 2);
  EXPECT_LE(worst(-88, 40, vec::sigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }), 3);
  EXPECT_LE(worst(-12, 12, vec::tanh, [](double x) { return std::tanh(x); }), 3);
  const auto log = [](double x) { return std::log(x); };
  EXPECT_LE(worst(
                0.5F, 2, [](float x) { return vec::log(std::fabs(x)); },
                [&](double x) { return log(std::fabs(x)); }),
            2);
  EXPECT_LE(worst(
                -103, 88.7F, [](float x) { return vec::log(vec::exp(x)); },
                [&](double x) { return log(vec::exp(float(x))); }),
            2);
  EXPECT_LE(worst(
                0, 1, [](float x) { return vec::log1p_of_fraction(std::fabs(x)); },
                [](double x) { return std::log1p(std::fabs(x)); }),
            5);
  EXPECT_LE(worst(
                1e-3F, 50, [](float x) { return vec::pow(std::fabs(x), -0.6F); },
                [](double x) { return std::pow(std::fabs(x), double(-0.6F)); }),
            1);
}

TEST(VectorMath, FarOut) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float x : {1e3F, std::numeric_limits<float>::max(), kInfinity}) {
    EXPECT_EQ(vec::exp(x), kInfinity);
    EXPECT_EQ(vec::exp(-x), 0);
    EXPECT_EQ(vec::expm1(x), kInfinity);
    EXPECT_EQ(vec::expm1(-x), -1);
    EXPECT_EQ(vec::sigmoid(x), 1);
    EXPECT_EQ(vec::sigmoid(-x), 0);
    EXPECT_EQ(vec::tanh(x), 1);
    EXPECT_EQ(vec::tanh(-x), -1);
  }
  EXPECT_EQ(vec::log(0), -kInfinity);
  EXPECT_EQ(vec::log(kInfinity), kInfinity);
  EXPECT_EQ(vec::log(1), 0);
  EXPECT_EQ(vec::pow_minus_three_quarters(0), kInfinity);
  EXPECT_EQ(vec::pow_minus_three_quarters(kInfinity), 0);
  EXPECT_TRUE(std::isnan(vec::pow_minus_three_quarters(nan)) &&
              std::isnan(vec::pow_minus_three_quarters(-1)));
  EXPECT_TRUE(std::isnan(vec::log(nan)) && std::isnan(vec::log(-1)));
  EXPECT_TRUE(std::isnan(vec::exp(nan)) && std::isnan(vec::expm1(nan)) &&
              std::isnan(vec::sigmoid(nan)) && std::isnan(vec::tanh(nan)));
}

}  // namespace
}  // namespace cafetiere
