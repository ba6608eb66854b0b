// SPDX-License-Identifier: Apache-2.0
// The passes over Winograd's tiles by plain and by wide vectors beside the definition: what they bring to the
// points gives, in float64, the sums of a 3 x 3 correlation and its weight gradient.
#include "core/device/cpu/winograd_tiles.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/device/isa.h"

namespace cafetiere::winograd {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kChannels = 24;  // a whole wide vector and half of one

/// `pixels` rows of channels.
Floats drawn(int64_t pixels, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Floats numbers(size_t(pixels * kChannels));
  for (float& n : numbers) n = normal(random);
  return numbers;
}

/// Pixels of which those in `missing` are outside of the image.
template <size_t kCount>
std::array<const float*, kCount> rows_of(const Floats& from, const std::vector<size_t>& missing) {
  std::array<const float*, kCount> rows;
  for (size_t i = 0; i < kCount; ++i) rows[i] = from.data() + i * kChannels;
  for (size_t i : missing) rows[i] = nullptr;
  return rows;
}

/// All passes over a tile with pixels outside: the points of its source and of its gradient, the outputs and
/// the taps of the points' products with `kernel`.
struct Passed {
  Floats source = Floats(kPoints * kChannels), gradient = source;
  Floats outputs = Floats(4 * kChannels), taps = Floats(kTaps * kChannels);
  Floats kernels = source, flipped = source;
};

Passed pass(const TilePasses& by, const Floats& d, const Floats& dy, const Floats& bias) {
  Passed to;
  by.source(rows_of<16>(d, {0, 4, 8, 12}), kChannels, to.source.data(), kChannels);
  by.gradient(rows_of<4>(dy, {1, 3}), kChannels, to.gradient.data(), kChannels);
  std::array<float*, 4> y;
  for (size_t i = 0; i < 4; ++i) y[i] = i == 3 ? nullptr : to.outputs.data() + i * kChannels;
  by.outputs(to.source.data(), kChannels, kChannels, bias.data(), 0.F, y);
  Floats products(to.source.size());
  for (size_t i = 0; i < products.size(); ++i) products[i] = to.source[i] * to.gradient[i];
  by.taps(products.data(), kChannels, kChannels, to.taps.data());
  by.kernels(d.data(), kChannels, false, to.kernels.data(), kChannels);
  by.kernels(d.data(), kChannels, true, to.flipped.data(), kChannels);
  return to;
}

bool same_bits(const Floats& a, const Floats& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(WinogradTiles, WideVectorsGiveTheBitsOfPlainOnes) {
  if (!has_wide_vectors(instruction_set())) GTEST_SKIP() << "no wide vectors";
  const Floats d = drawn(16, 1), dy = drawn(4, 2), bias = drawn(1, 3);
  const Passed plain = pass(plain_tile_passes(), d, dy, bias);
  const Passed wide = pass(wide_tile_passes(), d, dy, bias);
  EXPECT_TRUE(same_bits(plain.source, wide.source));
  EXPECT_TRUE(same_bits(plain.gradient, wide.gradient));
  EXPECT_TRUE(same_bits(plain.outputs, wide.outputs));
  EXPECT_TRUE(same_bits(plain.taps, wide.taps));
  EXPECT_TRUE(same_bits(plain.kernels, wide.kernels));
  EXPECT_TRUE(same_bits(plain.flipped, wide.flipped));
}

TEST(WinogradTiles, TapsAreTheGradientOfTheWeights) {
  const Floats d = drawn(16, 1), dy = drawn(4, 2), bias = drawn(1, 3);
  const Passed got = pass(tile_passes(), d, dy, bias);
  for (int64_t kh = 0; kh < 3; ++kh) {
    for (int64_t kw = 0; kw < 3; ++kw) {
      for (int64_t c = 0; c < kChannels; ++c) {
        double sum = 0;
        for (int64_t y = 0; y < 2; ++y) {  // of the left outputs: the right ones are outside
          const int64_t h = y + kh, w = kw;
          if (w > 0)
            sum +=
                double(dy[size_t(y * 2 * kChannels + c)]) * d[size_t((h * 4 + w) * kChannels + c)];
        }
        EXPECT_NEAR(got.taps[size_t((kh * 3 + kw) * kChannels + c)], sum, 2e-5) << kh << kw << c;
      }
    }
  }
}

TEST(WinogradTiles, KernelsAreBroughtToThePoints) {
  constexpr double kG[4][3] = {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  const Floats d = drawn(16, 1);
  const Passed got = pass(tile_passes(), d, drawn(4, 2), drawn(1, 3));
  for (int64_t i = 0; i < kPoints * kChannels; ++i) {
    const int64_t point = i / kChannels, c = i % kChannels;
    double sum = 0, turned = 0;
    for (int64_t t = 0; t < kTaps; ++t) {
      const double factor = kG[point / 4][t / 3] * kG[point % 4][t % 3];
      sum += factor * double(d[size_t(t * kChannels + c)]);
      turned += factor * double(d[size_t((8 - t) * kChannels + c)]);
    }
    EXPECT_NEAR(got.kernels[size_t(i)], sum, 2e-6);
    EXPECT_NEAR(got.flipped[size_t(i)], turned, 2e-6);
  }
}

TEST(WinogradTiles, OutputsAreCutAndThoseOutsideAreLeft) {
  const Floats d = drawn(16, 1), dy = drawn(4, 2), bias = drawn(1, 3);
  const Passed got = pass(tile_passes(), d, dy, bias);
  // The first output is the sum of the points of the first three rows and columns.
  for (int64_t c = 0; c < kChannels; ++c) {
    double sum = 0;
    const auto at = [&](int64_t i) { return double(got.source[size_t(i * kChannels + c)]); };
    for (int64_t i : {0, 1, 2, 4, 5, 6, 8, 9, 10}) sum += at(i);
    EXPECT_NEAR(got.outputs[size_t(c)], std::max(0.0, sum + double(bias[size_t(c)])), 2e-5);
    EXPECT_EQ(got.outputs[size_t(3 * kChannels + c)], 0);  // never written
  }
}

}  // namespace
}  // namespace cafetiere::winograd
