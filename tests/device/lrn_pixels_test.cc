// SPDX-License-Identifier: Apache-2.0
// Local response normalisation of pixels beside its definition in double precision.
#include "core/device/cpu/lrn_pixels.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/device/isa.h"

namespace cafetiere {
namespace {

using Doubles = std::vector<double>;

template <class T>
std::vector<T> normal_numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.2F, 2);
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& n : numbers) {
    if constexpr (std::is_same_v<T, float>)
      n = normal(random);
    else
      n = to_bfloat16(normal(random));
  }
  return numbers;
}

double value(float x) { return double(x); }
double value(uint16_t x) { return double(from_bfloat16(x)); }

/// Of a pixel, channel by channel: what `term` adds up to over the window.
template <class F>
Doubles windows(const LrnPixels& p, const F& term) {
  Doubles sums(size_t(p.channels), 0.0);
  for (int64_t c = 0; c < p.channels; ++c) {
    const int64_t first = std::max<int64_t>(0, c - p.g.size / 2);
    for (int64_t d = first; d <= std::min(p.channels - 1, c + p.g.size / 2); ++d) {
      sums[size_t(c)] += term(d);
    }
  }
  return sums;
}

template <class T>
void check(const LrnPixels& p, int64_t pixels) {
  const int64_t count = pixels * p.channels;
  const auto x = normal_numbers<T>(count, 1), dy = normal_numbers<T>(count, 2);
  std::vector<T> y(x.size()), dx(x.size());
  const LrnPasses<T> plain = plain_lrn_passes<T>();
  plain.forward(p, pixels, x.data(), y.data());
  plain.backward(p, pixels, x.data(), dy.data(), dx.data());
  const double error = std::is_same_v<T, float> ? 2e-6 : 0.005, share = p.g.alpha / p.g.size;
  for (int64_t first = 0; first < count; first += p.channels) {
    const auto at = [&](const std::vector<T>& of, int64_t c) {
      return value(of[size_t(first + c)]);
    };
    Doubles s = windows(p, [&](int64_t c) { return at(x, c) * at(x, c); });
    for (double& sum : s) sum = p.g.k + share * sum;
    const Doubles spread = windows(
        p, [&](int64_t c) { return at(dy, c) * at(x, c) * std::pow(s[size_t(c)], -p.g.beta - 1); });
    for (int64_t c = 0; c < p.channels; ++c) {
      const double power = std::pow(s[size_t(c)], -p.g.beta);
      ASSERT_NEAR(at(y, c), at(x, c) * power, error * (1 + std::fabs(at(x, c)) * power));
      const double gradient =
          at(dy, c) * power - 2 * share * p.g.beta * at(x, c) * spread[size_t(c)];
      ASSERT_NEAR(at(dx, c), gradient, error * (4 + std::fabs(gradient)));
    }
  }
  if (!has_wide_vectors(instruction_set())) return;
  const LrnPasses<T> wide = wide_lrn_passes<T>();
  std::vector<T> again(x.size());
  wide.forward(p, pixels, x.data(), again.data());
  EXPECT_EQ(again, y);
  wide.backward(p, pixels, x.data(), dy.data(), again.data());
  EXPECT_EQ(again, dx);
}

TEST(LrnPixels, AreThoseOfTheDefinition) {
  for (const LrnGeometry& g : {LrnGeometry{5, 0.5F, 0.75F, 1},
                               {3, 0.7F, 0.75F, 2},
                               {5, 1e-4F, 0.5F, 1},
                               {15, 2, 1.1F, 0.5F},
                               {129, 1, 0.75F, 1}}) {
    for (const int64_t channels : {1, 2, 5, 20, 96, 192, 1024}) {
      const LrnPixels p{g, channels};
      ASSERT_TRUE(LrnPixels::fits(g, channels));
      for (const int64_t pixels : {1, 7, 40}) {
        SCOPED_TRACE(testing::Message() << g.size << " of " << channels << " x " << pixels);
        check<float>(p, pixels);
        check<uint16_t>(p, pixels);
      }
    }
  }
}

}  // namespace
}  // namespace cafetiere
