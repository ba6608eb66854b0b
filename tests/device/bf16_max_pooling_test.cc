// SPDX-License-Identifier: Apache-2.0
// Max pooling of bfloat16 by plain and by wide vectors beside the definition, zeros of both signs, equal
// numbers, NaN and infinities included.
#include "core/device/cpu/bf16_max_pooling.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/device/isa.h"
#include "tests/device/pool_window.h"

namespace cafetiere::bf16 {
namespace {

using Numbers = std::vector<uint16_t>;

/// Few different numbers, so that many are equal, and all kinds of them.
Numbers drawn(int64_t count, int seed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float kinds[] = {0, -0.F,   1,         -1,         2.5F,          -3,
                         3, 1e-40F, kInfinity, -kInfinity, std::nanf(""), -std::nanf("")};
  std::mt19937 random(static_cast<unsigned>(seed));
  Numbers numbers(static_cast<size_t>(count));
  for (uint16_t& n : numbers) n = to_bfloat16(kinds[random() % std::size(kinds)]);
  return numbers;
}

struct Pooled {
  Numbers y, place, dx;
};

int64_t inputs(const PoolPixels& p) { return p.g.in_h * p.g.in_w * p.pixel; }
int64_t outputs(const PoolPixels& p) { return p.g.out_h * p.g.out_w * p.pixel; }

Pooled by_definition(const PoolPixels& p, const Numbers& x, const Numbers& dy) {
  Pooled to{Numbers(dy.size()), Numbers(dy.size()), Numbers(x.size())};
  std::vector<float> sums(x.size());
  for (int64_t out = 0; out < outputs(p); ++out) {
    const int64_t c = out % p.pixel, oh = out / p.pixel / p.g.out_w, ow = out / p.pixel % p.g.out_w;
    const auto rows = p.g.rows(oh), cols = p.g.cols(ow);
    float best = -std::numeric_limits<float>::infinity();
    int64_t chosen = -1;
    to.place[size_t(out)] = kNowhere;
    for (int64_t h = rows.begin; h < rows.end; ++h) {
      for (int64_t w = cols.begin; w < cols.end; ++w) {
        const int64_t i = (h * p.g.in_w + w) * p.pixel + c;
        if (!(from_bfloat16(x[size_t(i)]) > best)) continue;
        best = from_bfloat16(x[size_t(i)]), chosen = i;
        to.place[size_t(out)] = uint16_t((h - oh * p.g.stride_h + p.g.pad_h) * p.g.kernel_w + w -
                                         ow * p.g.stride_w + p.g.pad_w);
      }
    }
    to.y[size_t(out)] = to_bfloat16(best + 0.F);
    if (chosen >= 0) sums[size_t(chosen)] += from_bfloat16(dy[size_t(out)]);
  }
  for (size_t i = 0; i < sums.size(); ++i) to.dx[i] = to_bfloat16(sums[i]);
  return to;
}

/// In bands of three rows.
Pooled by_rows(const MaxPoolRows& run, const PoolPixels& p, const Numbers& x, const Numbers& dy) {
  Pooled to{Numbers(dy.size()), Numbers(dy.size()), Numbers(x.size())};
  Numbers alone(dy.size());  // without places
  for (int64_t h = 0; h < p.g.out_h; h += 3) {
    const int64_t end = std::min(h + 3, p.g.out_h);
    run.forward(p, h, end, x.data(), to.y.data(), to.place.data());
    run.forward(p, h, end, x.data(), alone.data(), nullptr);
  }
  EXPECT_EQ(alone, to.y);
  for (int64_t h = 0; h < p.g.in_h; h += 3) {
    run.backward(p, h, std::min(h + 3, p.g.in_h), dy.data(), to.place.data(), to.dx.data());
  }
  return to;
}

struct Case {
  PoolGeometry g;
  int64_t pixel;
};

class Bf16MaxPooling : public testing::TestWithParam<Case> {};

TEST_P(Bf16MaxPooling, FollowsTheDefinition) {
  const PoolPixels p{GetParam().g, GetParam().pixel};
  ASSERT_TRUE(fits_max_pooling(p.g));
  const Numbers x = drawn(inputs(p), 1);
  Numbers dy = drawn(outputs(p), 2);
  for (uint16_t& n : dy) {
    if (!std::isfinite(from_bfloat16(n)))
      n = to_bfloat16(0.75F);  // of a NaN the payload would be compared
  }
  const Pooled wanted = by_definition(p, x, dy), plain = by_rows(plain_max_pool_rows(), p, x, dy);
  EXPECT_EQ(plain.place, wanted.place);
  EXPECT_EQ(plain.y, wanted.y);
  EXPECT_EQ(plain.dx, wanted.dx);
  if (!has_wide_vectors(instruction_set())) return;
  const Pooled wide = by_rows(wide_max_pool_rows(), p, x, dy);
  EXPECT_EQ(wide.place, wanted.place);
  EXPECT_EQ(wide.y, wanted.y);
  EXPECT_EQ(wide.dx, wanted.dx);
}

INSTANTIATE_TEST_SUITE_P(
    Shapes, Bf16MaxPooling,
    testing::Values(Case{pool_window(24, 24, 12, 12, 2, 2, 0), 20},
                    Case{pool_window(14, 15, 14, 15, 3, 1, 1), 200},
                    Case{pool_window(13, 11, 6, 5, 3, 2, 0), 96},
                    Case{pool_window(8, 8, 4, 4, 3, 2, 0), 33},  // cut at the edge
                    Case{pool_window(5, 5, 1, 1, 5, 1, 0), 7},
                    Case{pool_window(9, 9, 3, 3, 2, 4, 0), 1},       // gaps
                    Case{pool_window(5, 7, 3, 4, 2, 2, 0), 40},      // windows cut off
                    Case{pool_window(5, 7, 2, 2, 2, 3, 0), 130},     // inputs left out
                    Case{pool_window(6, 300, 4, 298, 3, 1, 0), 70},  // slices
                    Case{pool_window(3, 3, 5, 5, 3, 1, 2), 32}));

}  // namespace
}  // namespace cafetiere::bf16
