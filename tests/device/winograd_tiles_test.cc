// SPDX-License-Identifier: Apache-2.0
// The passes over Winograd's tiles by plain and by wide vectors beside the definition: what they bring to the
// points gives, in float64, the sums of a correlation and its weight gradient.
#include "core/device/cpu/winograd_tiles.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/device/isa.h"
#include "tests/device/drawn.h"

namespace cafetiere::winograd {
namespace {

using Floats = std::vector<float>;

constexpr int64_t kChannels = 24;  // a whole wide vector and half of one

/// `pixels` rows of channels.
Floats drawn_pixels(int64_t pixels, unsigned seed) { return drawn(pixels * kChannels, seed); }

/// Pixels of which those in `missing` are outside of the image.
template <size_t kCount>
std::array<const float*, kCount> rows_of(const Floats& from, const std::vector<size_t>& missing) {
  std::array<const float*, kCount> rows;
  for (size_t i = 0; i < kCount; ++i) rows[i] = from.data() + i * kChannels;
  for (size_t i : missing) rows[i] = nullptr;
  return rows;
}

/// An image as high as a tile of `side` x `side` kernels, and one column wider: a first tile starts a
/// column before it, a second one ends with it.
Plane plane_of(int64_t side) { return {side + 1, side + 2, kChannels}; }

/// All passes over a tile with pixels outside: the points of two tiles' sources and of its gradient, the
/// outputs of the first points, the taps of the points' products, and the points of kernels.
struct Passed {
  Floats source, gradient, outputs, taps, kernels, flipped;

  explicit Passed(int64_t side)
      : source(size_t(2 * point_count(side) * kChannels)),
        gradient(size_t(kSums * kChannels)),
        outputs(size_t(4 * kChannels)),
        taps(size_t(side * side * kChannels)),
        kernels(source.size() / 2),
        flipped(kernels.size()) {}
};

template <size_t kSide>
Passed pass(const TilePasses& by, const Floats& d, const Floats& dy, const Floats& bias) {
  Passed to(kSide);
  const Plane plane = plane_of(kSide);
  by.source({plane, d.data(), {0, 0, -1}, 0}, 2, kChannels, to.source.data(), 2 * kChannels);
  by.gradient(rows_of<4>(dy, {1, 3}).data(), kChannels, to.gradient.data(), kChannels);
  std::array<float*, 4> y;
  for (size_t i = 0; i < 4; ++i) y[i] = i == 3 ? nullptr : to.outputs.data() + i * kChannels;
  by.outputs(to.source.data(), 2 * kChannels, kChannels, bias.data(), 0.F, y.data());
  Floats products(to.kernels.size());
  for (int64_t i = 0; i < point_count(kSide); ++i) {
    for (int64_t c = 0; c < kChannels; ++c) {
      products[size_t(i * kChannels + c)] = to.source[size_t(2 * i * kChannels + c)] *
                                            to.gradient[size_t(sum_of(kSide, i) * kChannels + c)];
    }
  }
  by.taps(products.data(), kChannels, kChannels, to.taps.data());
  by.kernels(d.data(), kChannels, false, to.kernels.data(), kChannels);
  by.kernels(d.data(), kChannels, true, to.flipped.data(), kChannels);
  return to;
}

bool same_bits(const Floats& a, const Floats& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

const Floats& source() {
  static const Floats d = drawn_pixels(42, 1);
  return d;
}
const Floats& gradient() {
  static const Floats dy = drawn_pixels(4, 2);
  return dy;
}
const Floats& bias() {
  static const Floats b = drawn_pixels(1, 3);
  return b;
}

template <size_t kSide>
void expect_same_bits() {
  const Passed plain = pass<kSide>(plain_tile_passes(kSide), source(), gradient(), bias());
  const Passed wide = pass<kSide>(wide_tile_passes(kSide), source(), gradient(), bias());
  EXPECT_TRUE(same_bits(plain.source, wide.source));
  EXPECT_TRUE(same_bits(plain.gradient, wide.gradient));
  EXPECT_TRUE(same_bits(plain.outputs, wide.outputs));
  EXPECT_TRUE(same_bits(plain.taps, wide.taps));
  EXPECT_TRUE(same_bits(plain.kernels, wide.kernels));
  EXPECT_TRUE(same_bits(plain.flipped, wide.flipped));
}

TEST(WinogradTiles, WideVectorsGiveTheBitsOfPlainOnes) {
  if (!has_wide_vectors(instruction_set())) GTEST_SKIP() << "no wide vectors";
  expect_same_bits<3>();
  expect_same_bits<5>();
}

template <size_t kSide>
void expect_gradient() {
  const Passed got = pass<kSide>(tile_passes(kSide), source(), gradient(), bias());
  const int64_t width = plane_of(kSide).w;
  for (int64_t kh = 0; kh < int64_t(kSide); ++kh) {
    for (int64_t kw = 0; kw < int64_t(kSide); ++kw) {
      for (int64_t c = 0; c < kChannels; ++c) {
        double sum = 0;
        for (int64_t y = 0; y < 2; ++y) {  // of the left outputs: the right ones are outside
          if (kw > 0)
            sum += double(gradient()[size_t(y * 2 * kChannels + c)]) *
                   source()[size_t(((y + kh) * width + kw - 1) * kChannels + c)];
        }
        EXPECT_NEAR(got.taps[size_t((kh * int64_t(kSide) + kw) * kChannels + c)], sum, 2e-5)
            << kh << kw << c;
      }
    }
  }
}

/// The second of two tiles, whose first columns are those of the first one, beside that tile alone.
template <size_t kSide>
void expect_neighbours() {
  const TilePasses by = tile_passes(kSide);
  Floats two(size_t(2 * point_count(kSide) * kChannels)), one(two.size() / 2), second = one;
  const Plane plane = plane_of(kSide);
  by.source({plane, source().data(), {0, 0, -1}, 0}, 2, kChannels, two.data(), 2 * kChannels);
  by.source({plane, source().data(), {0, 0, 1}, 0}, 1, kChannels, one.data(), kChannels);
  for (size_t i = 0; i < one.size(); ++i) {
    second[i] = two[(2 * (i / kChannels) + 1) * kChannels + i % kChannels];
  }
  EXPECT_TRUE(same_bits(one, second));
}

TEST(WinogradTiles, NeighboursShareColumns) {
  expect_neighbours<3>();
  expect_neighbours<5>();
}

TEST(WinogradTiles, TapsAreTheGradientOfTheWeights) {
  expect_gradient<3>();
  expect_gradient<5>();
}

/// Rows of G: the factors of the taps at the points of an axis.
using Factors = std::vector<std::vector<double>>;

template <size_t kSide>
void expect_kernels(const Factors& of) {
  const Passed got = pass<kSide>(tile_passes(kSide), source(), gradient(), bias());
  const size_t axis = of.size();
  for (size_t i = 0; i < axis * axis * size_t(kChannels); ++i) {
    const size_t point = i / size_t(kChannels), c = i % size_t(kChannels);
    double sum = 0, turned = 0;
    for (size_t t = 0; t < kSide * kSide; ++t) {
      const double factor = of[point / axis][t / kSide] * of[point % axis][t % kSide];
      sum += factor * double(source()[t * size_t(kChannels) + c]);
      turned += factor * double(source()[(kSide * kSide - 1 - t) * size_t(kChannels) + c]);
    }
    EXPECT_NEAR(got.kernels[i], sum, 2e-6);
    EXPECT_NEAR(got.flipped[i], turned, 2e-6);
  }
}

TEST(WinogradTiles, KernelsAreBroughtToThePoints) {
  expect_kernels<3>({{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}});
  expect_kernels<5>({{1, 0, 0, 0, 0},
                     {0.5, 0.5, 0.5, 0, 0},
                     {0.5, -0.5, 0.5, 0, 0},
                     {0, 0, 1, 0, 0},
                     {0, 0, 0, 1, 0},
                     {0, 0, 0, 1, 1},
                     {0, 0, 0, 0, 1}});
}

TEST(WinogradTiles, OutputsAreCutAndThoseOutsideAreLeft) {
  const Passed got = pass<3>(tile_passes(3), source(), gradient(), bias());
  // The first output is the sum of the points of the first three rows and columns.
  for (int64_t c = 0; c < kChannels; ++c) {
    double sum = 0;
    const auto at = [&](int64_t i) { return double(got.source[size_t(2 * i * kChannels + c)]); };
    for (int64_t i : {0, 1, 2, 4, 5, 6, 8, 9, 10}) sum += at(i);
    EXPECT_NEAR(got.outputs[size_t(c)], std::max(0.0, sum + double(bias()[size_t(c)])), 2e-5);
    EXPECT_EQ(got.outputs[size_t(3 * kChannels + c)], 0);  // never written
  }
}

}  // namespace
}  // namespace cafetiere::winograd
