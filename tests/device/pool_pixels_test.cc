// SPDX-License-Identifier: Apache-2.0
// Pooling of pixels by plain and by wide vectors beside the definition, equal numbers, NaN and infinities
// included.
#include "core/device/cpu/pool_pixels.h"

#include <gmock/gmock.h>

#include <cfloat>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/device/isa.h"
#include "tests/device/pool_window.h"

namespace cafetiere {
namespace {

void set(float& to, float value) { to = value; }
void set(uint16_t& to, float value) { to = to_bfloat16(value); }
float get(float value) { return value; }
float get(uint16_t value) { return from_bfloat16(value); }

struct Case {
  PoolGeometry g;
  int64_t pixel;
};

/// Rounded sums, some equal numbers, and in `wild` what is no finite number.
template <class T>
std::vector<T> drawn(int64_t count, int seed, bool wild) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  std::vector<T> numbers(static_cast<size_t>(count));
  for (T& n : numbers) {
    const auto kind = random() % 16;
    const float value = normal(random);
    if (wild && kind == 0)
      set(n, std::nanf(""));
    else if (wild && kind < 3)
      set(n, kind == 1 ? std::numeric_limits<float>::infinity() : -FLT_MAX);
    else
      set(n, kind < 8 ? std::round(value) : value);
  }
  return numbers;
}

template <class T>
struct Pooled {
  std::vector<T> max, average, max_dx, average_dx;
  std::vector<float> index;

  explicit Pooled(const Case& c)
      : max(size_t(c.g.out_h * c.g.out_w * c.pixel)),
        average(max.size()),
        max_dx(size_t(c.g.in_h * c.g.in_w * c.pixel)),
        average_dx(max_dx.size()),
        index(max.size()) {}
};

/// One window: f(input number) for those of its inputs that are in the image.
template <class F>
void for_each_input(const Case& c, size_t out, const F& f) {
  const int64_t pixel = int64_t(out) / c.pixel, channel = int64_t(out) % c.pixel;
  const auto rows = c.g.rows(pixel / c.g.out_w), cols = c.g.cols(pixel % c.g.out_w);
  for (int64_t h = rows.begin; h < rows.end; ++h) {
    for (int64_t w = cols.begin; w < cols.end; ++w) {
      f(size_t((h * c.g.in_w + w) * c.pixel + channel));
    }
  }
}
/// The pixel of an input, as an index has it.
float place_of(const Case& c, size_t input) {
  const size_t place = input / size_t(c.pixel);
  return float(place);
}
float size_of_window(const Case& c, size_t out) {
  const int64_t pixel = int64_t(out) / c.pixel;
  return float(c.g.rows(pixel / c.g.out_w).padded * c.g.cols(pixel % c.g.out_w).padded);
}

template <class T>
Pooled<T> by_definition(const Case& c, const std::vector<T>& x, const std::vector<T>& dy) {
  Pooled<T> to(c);
  std::vector<float> max_dx(x.size()), average_dx(x.size());
  for (size_t out = 0; out < dy.size(); ++out) {
    float best = -FLT_MAX, sum = 0, share = 1 / size_of_window(c, out);
    to.index[out] = -1;
    for_each_input(c, out, [&](size_t i) {
      sum += get(x[i]);
      average_dx[i] += get(dy[out]) * share;
      if (!(get(x[i]) > best)) return;
      best = get(x[i]), to.index[out] = place_of(c, i);
    });
    set(to.max[out], best), set(to.average[out], sum / size_of_window(c, out));
    for_each_input(c, out, [&](size_t i) {
      if (place_of(c, i) == to.index[out]) max_dx[i] += get(dy[out]);
    });
  }
  for (size_t i = 0; i < x.size(); ++i) {
    set(to.max_dx[i], max_dx[i]), set(to.average_dx[i], average_dx[i]);
  }
  return to;
}

/// In bands of three rows.
template <class T>
Pooled<T> by_rows(const PoolRows<T>& run, const Case& c, const std::vector<T>& x,
                  const std::vector<T>& dy) {
  const PoolPixels p{c.g, c.pixel};
  Pooled<T> to(c);
  std::vector<T> alone(to.max.size());  // without indices
  for (int64_t h = 0; h < c.g.out_h; h += 3) {
    const int64_t end = std::min(h + 3, c.g.out_h);
    run.max(p, h, end, x.data(), to.max.data(), to.index.data());
    run.max(p, h, end, x.data(), alone.data(), nullptr);
    run.average(p, h, end, x.data(), to.average.data());
  }
  for (int64_t h = 0; h < c.g.in_h; h += 3) {
    const int64_t end = std::min(h + 3, c.g.in_h);
    run.max_backward(p, h, end, dy.data(), to.index.data(), to.max_dx.data());
    run.average_backward(p, h, end, dy.data(), to.average_dx.data());
  }
  EXPECT_EQ(std::memcmp(alone.data(), to.max.data(), alone.size() * sizeof(T)), 0);
  return to;
}

/// The same bits, but that any NaN is as good as another.
template <class T>
void expect_same(const char* what, const std::vector<T>& got, const std::vector<T>& wanted) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (std::isnan(get(wanted[i])) && std::isnan(get(got[i]))) continue;
    ASSERT_EQ(std::memcmp(&got[i], &wanted[i], sizeof(T)), 0)
        << what << " " << i << ": " << get(got[i]) << ", wanted " << get(wanted[i]);
  }
}
template <class T>
void expect_same(const Pooled<T>& got, const Pooled<T>& wanted) {
  expect_same("maximum", got.max, wanted.max);
  expect_same("index", got.index, wanted.index);
  expect_same("average", got.average, wanted.average);
  expect_same("gradient of the maximum, input", got.max_dx, wanted.max_dx);
  expect_same("gradient of the average, input", got.average_dx, wanted.average_dx);
}

template <class T>
void check(const Case& c) {
  for (const bool wild : {false, true}) {
    const auto x = drawn<T>(c.g.in_h * c.g.in_w * c.pixel, 1, wild);
    const auto dy = drawn<T>(c.g.out_h * c.g.out_w * c.pixel, 2, false);
    const Pooled<T> wanted = by_definition(c, x, dy);
    expect_same(by_rows(plain_pool_rows<T>(), c, x, dy), wanted);
    if (has_wide_vectors(instruction_set()))
      expect_same(by_rows(wide_pool_rows<T>(), c, x, dy), wanted);
  }
}

class PoolPixelsTest : public testing::TestWithParam<Case> {};

TEST_P(PoolPixelsTest, FollowTheDefinition) {
  check<float>(GetParam());
  check<uint16_t>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Shapes, PoolPixelsTest,
                         testing::Values(Case{pool_window(24, 24, 12, 12, 2, 2, 0), 20},
                                         Case{pool_window(14, 15, 14, 15, 3, 1, 1), 200},
                                         Case{pool_window(13, 11, 6, 5, 3, 2, 0), 96},
                                         Case{pool_window(8, 8, 4, 4, 3, 2, 0),
                                              33},  // cut at the edge
                                         Case{pool_window(5, 5, 1, 1, 5, 1, 0), 7},
                                         Case{pool_window(9, 9, 3, 3, 2, 4, 0), 1},  // gaps
                                         Case{pool_window(3, 3, 5, 5, 3, 1, 2), 32}));

}  // namespace
}  // namespace cafetiere
