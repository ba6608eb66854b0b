// SPDX-License-Identifier: Apache-2.0
// The elementary functions of doubles against long doubles.
#include "core/base/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace cafetiere {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

/// The error in units of the last place of a double near `expected`.
double ulps(double value, long double expected) {
  int exponent = 0;
  std::frexp(static_cast<double>(expected), &exponent);
  return static_cast<double>(std::fabs(value - expected)) /
         std::ldexp(1.0, std::max(exponent - 53, -1074));
}

/// The largest of measure(x) over [from, to].
template <class F>
double worst(double from, double to, F measure) {
  double largest = 0;
  constexpr int kPoints = 200000;
  for (int i = 0; i <= kPoints; ++i) {
    largest = std::max(largest, measure(from + (to - from) * i / kPoints));
  }
  return largest;
}

TEST(Elementary, ErrorsAreAsStated) {
  const auto exp_error = [](double x) {
    return ulps(elementary::exp(x), std::exp(static_cast<long double>(x)));
  };
  EXPECT_LE(worst(-745, 709.7, exp_error), 2);
  EXPECT_LE(worst(-1, 1, exp_error), 2);
  const auto log_error = [](double x) {
    return ulps(elementary::log(x), std::log(static_cast<long double>(x)));
  };
  EXPECT_LE(worst(1e-3, 3, log_error), 2);
  EXPECT_LE(worst(-745, 709, [&](double x) { return log_error(std::exp(x)); }), 2);
  const auto cos_error = [](double x) {
    return static_cast<double>(
        std::fabs(elementary::cos(x) - std::cos(static_cast<long double>(x))));
  };
  EXPECT_LE(worst(-10, 10, cos_error), 0x1p-52);
  EXPECT_LE(worst(-1e5, 1e5, cos_error), 0x1p-52);
}

TEST(Elementary, PowersAreRightToAFloat) {
  for (const double y : {-3.0, -1.75, -0.75, 0.3, 0.5, 1.5, 2.0, 7.0, 90.0}) {
    const auto error = [y](double x) {
      const long double exact = std::pow(static_cast<long double>(x), static_cast<long double>(y));
      const double bound = 2 + std::fabs(y * std::log(x));
      return ulps(elementary::pow(x, y), exact) / (2 * bound);
    };
    EXPECT_LE(worst(1e-3, 20, error), 1) << "exponent " << y;
  }
}

TEST(Elementary, FarOut) {
  EXPECT_EQ(elementary::exp(kInfinity), kInfinity);
  EXPECT_EQ(elementary::exp(-kInfinity), 0);
  EXPECT_EQ(elementary::log(0), -kInfinity);
  EXPECT_EQ(elementary::log(kInfinity), kInfinity);
  EXPECT_EQ(static_cast<float>(elementary::pow(-2, 3)), -8);
  EXPECT_EQ(static_cast<float>(elementary::pow(-2, 2)), 4);
  EXPECT_EQ(elementary::pow(0, 2), 0);
  EXPECT_EQ(elementary::pow(0, -1), kInfinity);
  EXPECT_EQ(elementary::pow(kNan, 0), 1);
  EXPECT_TRUE(std::isnan(elementary::pow(-2, 0.5)));
  EXPECT_TRUE(std::isnan(elementary::exp(kNan)) && std::isnan(elementary::log(-1)) &&
              std::isnan(elementary::log(kNan)) && std::isnan(elementary::pow(kNan, 2)) &&
              std::isnan(elementary::cos(kNan)) && std::isnan(elementary::cos(1e6)));
}

}  // namespace
}  // namespace cafetiere
