// SPDX-License-Identifier: Apache-2.0
// The passes of winograd_tiles.h for any vector width: the file of each instruction set includes
// this once, with its Lanes.
#pragma once

#include <algorithm>
#include <array>

#include "core/device/cpu/winograd_tiles.h"

namespace cafetiere::winograd {
namespace {

template <class V>
using Four = std::array<V, 4>;
/// The taps of an axis, the pixels that they cover for two outputs, and the points.
template <class V, size_t kSide>
using Taps = std::array<V, kSide>;
template <class V, size_t kSide>
using Span = std::array<V, kSide + 1>;
template <class V, size_t kSide>
using Points = std::array<V, size_t(axis_points(kSide))>;

/// One column of B^T d, A^T m, A d, G g and G^T m, respectively, for kernels of kSide x kSide.
template <size_t kSide, class V>
inline Points<V, kSide> transform_source(const Span<V, kSide>& d) {
  if constexpr (kSide == 3) {
    return {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]};
  } else {
    return {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3], d[3] - d[4], d[4], d[4] - d[5]};
  }
}
template <class V>
inline std::array<V, 2> transform_sums(const Four<V>& m) {
  return {m[0] + m[1] + m[2], m[1] - m[2] - m[3]};
}
template <class V>
inline Four<V> transform_gradient(const V& a, const V& b) {
  return {a, a + b, a - b, -b};
}
template <size_t kSide, class V>
inline Points<V, kSide> transform_kernel(const Taps<V, kSide>& g) {
  const V even = 0.5F * (g[0] + g[2]), odd = 0.5F * g[1];
  if constexpr (kSide == 3) {
    return {g[0], even + odd, even - odd, g[2]};
  } else {
    return {g[0], even + odd, even - odd, g[2], g[3], g[3] + g[4], g[4]};
  }
}
template <size_t kSide, class V>
inline Taps<V, kSide> transform_taps(const Points<V, kSide>& m) {
  const V even = 0.5F * (m[1] + m[2]), odd = 0.5F * (m[1] - m[2]);
  if constexpr (kSide == 3) {
    return {m[0] + even, odd, even + m[3]};
  } else {
    return {m[0] + even, odd, even + m[3], m[4] + m[5], m[5] + m[6]};
  }
}

/// Calls f(first, lanes) for each vector of `channels` numbers.
template <class Lanes, class F>
inline void for_each_vector(int64_t channels, const F& f) {
  constexpr std::integral_constant<int64_t, Lanes::kCount> kWhole;
  int64_t c = 0;
  for (; c + Lanes::kCount <= channels; c += Lanes::kCount) f(c, kWhole);
  if (c < channels) f(c, channels - c);
}

/// Point (i, j) of kAxis x kAxis, and a row of them, for a vector of channels.
template <class Lanes, size_t kAxis, class N>
inline std::array<typename Lanes::V, kAxis> load_column(const float* points, size_t j,
                                                        int64_t apart, N lanes) {
  std::array<typename Lanes::V, kAxis> m;
  for (size_t i = 0; i < kAxis; ++i) {
    m[i] = Lanes::load(points + int64_t(i * kAxis + j) * apart, lanes);
  }
  return m;
}
template <class Lanes, size_t kAxis, class N>
inline void store_row(const std::array<typename Lanes::V, kAxis>& row, size_t i, float* points,
                      int64_t apart, N lanes) {
  for (size_t j = 0; j < kAxis; ++j) {
    Lanes::store(points + int64_t(i * kAxis + j) * apart, row[j], lanes);
  }
}

/// Row i of some columns.
template <class V, size_t kColumns, size_t kRows>
inline std::array<V, kColumns> row_of(const std::array<std::array<V, kRows>, kColumns>& columns,
                                      size_t i) {
  std::array<V, kColumns> row;
  for (size_t j = 0; j < kColumns; ++j) row[j] = columns[j][i];
  return row;
}

/// A column of B^T d: pixels in the padding are zeros.
template <class Lanes, size_t kSide, class N>
inline Points<typename Lanes::V, kSide> source_column(const SourceRows& d, int64_t x, int64_t c,
                                                      N lanes) {
  using V = typename Lanes::V;
  if (x < 0 || x >= d.width) return {};
  Span<V, kSide> column;
  for (size_t i = 0; i < column.size(); ++i) {
    column[i] = d.rows[i] ? Lanes::load(d.rows[i] + x * d.distance + c, lanes) : V{};
  }
  return transform_source<kSide, V>(column);
}

template <class Lanes, size_t kSide>
void source_pass(const SourceRows& d, int64_t tiles, int64_t channels, float* points,
                 int64_t apart) {
  using V = typename Lanes::V;
  constexpr size_t kSpan = kSide + 1;
  for_each_vector<Lanes>(channels, [&](int64_t c, auto lanes) {
    std::array<Points<V, kSide>, kSpan> held;
    std::array<Points<V, kSide>*, kSpan> columns;
    for (size_t j = 0; j < kSpan; ++j) {
      columns[j] = &held[j];
      if (j + 2 < kSpan) held[j] = source_column<Lanes, kSide>(d, d.column + int64_t(j), c, lanes);
    }
    for (int64_t t = 0; t < tiles; ++t) {
      for (size_t j = kSpan - 2; j < kSpan; ++j) {
        const int64_t x = d.column + 2 * t + int64_t(j);
        *columns[j] = source_column<Lanes, kSide>(d, x, c, lanes);
      }
      for (size_t i = 0; i < held[0].size(); ++i) {
        std::array<V, kSpan> row;
        for (size_t j = 0; j < kSpan; ++j) row[j] = (*columns[j])[i];
        store_row<Lanes>(transform_source<kSide, V>(row), i, points + t * channels + c, apart,
                         lanes);
      }
      std::rotate(columns.begin(), columns.begin() + 2, columns.end());
    }
  });
}

template <class Lanes>
void outputs_pass(const float* points, int64_t apart, int64_t channels, const float* bias,
                  float floor, float* const* y) {
  using V = typename Lanes::V;
  for_each_vector<Lanes>(channels, [&](int64_t c, auto lanes) {
    const V start = bias ? Lanes::load(bias + c, lanes) : V{}, least = V{} + floor;
    std::array<std::array<V, 2>, 4> half;
    for (size_t j = 0; j < 4; ++j) {
      half[j] = transform_sums<V>(load_column<Lanes, 4>(points + c, j, apart, lanes));
    }
    for (size_t i = 0; i < 2; ++i) {
      const auto row = transform_sums<V>(row_of(half, i));
      for (size_t j = 0; j < 2; ++j) {
        const V v = row[j] + start;
        if (y[i * 2 + j]) Lanes::store(y[i * 2 + j] + c, v < least ? least : v, lanes);
      }
    }
  });
}

template <class Lanes>
void gradient_pass(TilePasses::Pixels dy, int64_t channels, float* points, int64_t apart) {
  using V = typename Lanes::V;
  for_each_vector<Lanes>(channels, [&](int64_t c, auto lanes) {
    const auto pixel = [&](size_t i) { return dy[i] ? Lanes::load(dy[i] + c, lanes) : V{}; };
    const Four<V> left = transform_gradient<V>(pixel(0), pixel(2));
    const Four<V> right = transform_gradient<V>(pixel(1), pixel(3));
    for (size_t i = 0; i < 4; ++i) {
      const Four<V> row = transform_gradient<V>(left[i], right[i]);
      store_row<Lanes>(row, i, points + c, apart, lanes);
    }
  });
}

template <class Lanes, size_t kSide>
void kernels_pass(const float* taps, int64_t channels, bool flipped, float* points, int64_t apart) {
  using V = typename Lanes::V;
  constexpr int64_t kLast = kSide * kSide - 1;
  for_each_vector<Lanes>(channels, [&](int64_t c, auto lanes) {
    std::array<Points<V, kSide>, kSide> columns;
    for (size_t j = 0; j < kSide; ++j) {
      Taps<V, kSide> column;
      for (size_t i = 0; i < kSide; ++i) {
        const int64_t tap = int64_t(i * kSide + j);
        column[i] = Lanes::load(taps + (flipped ? kLast - tap : tap) * channels + c, lanes);
      }
      columns[j] = transform_kernel<kSide, V>(column);
    }
    for (size_t i = 0; i < columns[0].size(); ++i) {
      const auto row = transform_kernel<kSide, V>(row_of(columns, i));
      store_row<Lanes>(row, i, points + c, apart, lanes);
    }
  });
}

template <class Lanes, size_t kSide>
void taps_pass(const float* points, int64_t apart, int64_t channels, float* to) {
  using V = typename Lanes::V;
  constexpr size_t kAxis = size_t(axis_points(kSide));
  for_each_vector<Lanes>(channels, [&](int64_t c, auto lanes) {
    std::array<Taps<V, kSide>, kAxis> columns;
    for (size_t j = 0; j < kAxis; ++j) {
      columns[j] = transform_taps<kSide, V>(load_column<Lanes, kAxis>(points + c, j, apart, lanes));
    }
    for (size_t i = 0; i < kSide; ++i) {
      const auto row = transform_taps<kSide, V>(row_of(columns, i));
      for (size_t j = 0; j < kSide; ++j) {
        Lanes::store(to + int64_t(i * kSide + j) * channels + c, row[j], lanes);
      }
    }
  });
}

template <class Lanes, size_t kSide>
TilePasses tile_passes_for() {
  return {source_pass<Lanes, kSide>, outputs_pass<Lanes>, gradient_pass<Lanes>,
          kernels_pass<Lanes, kSide>, taps_pass<Lanes, kSide>};
}

template <class Lanes>
TilePasses tile_passes_of(int64_t kernel) {
  return kernel == 3 ? tile_passes_for<Lanes, 3>() : tile_passes_for<Lanes, 5>();
}

}  // namespace
}  // namespace cafetiere::winograd
