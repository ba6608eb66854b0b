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

/// One column of B^T d, A^T m, A d, G g and G^T m, respectively.
template <class V>
inline Four<V> transform_source(const Four<V>& d) {
  return {d[0] - d[2], d[1] + d[2], d[2] - d[1], d[1] - d[3]};
}
template <class V>
inline std::array<V, 2> transform_sums(const Four<V>& m) {
  return {m[0] + m[1] + m[2], m[1] - m[2] - m[3]};
}
template <class V>
inline Four<V> transform_gradient(const V& a, const V& b) {
  return {a, a + b, a - b, -b};
}
template <class V>
inline Four<V> transform_kernel(const V& a, const V& b, const V& c) {
  const V even = 0.5F * (a + c), odd = 0.5F * b;
  return {a, even + odd, even - odd, c};
}
template <class V>
inline std::array<V, 3> transform_taps(const Four<V>& m) {
  const V even = 0.5F * (m[1] + m[2]);
  return {m[0] + even, 0.5F * (m[1] - m[2]), even + m[3]};
}

/// Calls f(first, lanes) for each vector of `channels` numbers.
template <class Lanes, class F>
inline void for_each_vector(int64_t channels, const F& f) {
  constexpr std::integral_constant<int64_t, Lanes::kCount> kWhole;
  int64_t c = 0;
  for (; c + Lanes::kCount <= channels; c += Lanes::kCount) f(c, kWhole);
  if (c < channels) f(c, channels - c);
}

/// The four points of a column, and of a row, for a vector of channels.
template <class Lanes, class N>
inline Four<typename Lanes::V> load_column(const float* points, size_t j, int64_t apart, N lanes) {
  Four<typename Lanes::V> m;
  for (size_t i = 0; i < 4; ++i) m[i] = Lanes::load(points + int64_t(i * 4 + j) * apart, lanes);
  return m;
}
template <class Lanes, class N>
inline void store_row(const Four<typename Lanes::V>& row, size_t i, float* points, int64_t apart,
                      N lanes) {
  for (size_t j = 0; j < 4; ++j) {
    Lanes::store(points + int64_t(i * 4 + j) * apart, row[j], lanes);
  }
}

template <class Lanes>
void source_pass(const TilePasses::Pixels& d, int64_t channels, float* points, int64_t apart) {
  using V = typename Lanes::V;
  for_each_vector<Lanes>(channels, [&](int64_t c, auto lanes) {
    const auto pixel = [&](size_t i) { return d[i] ? Lanes::load(d[i] + c, lanes) : V{}; };
    Four<Four<V>> columns;
    for (size_t j = 0; j < 4; ++j) {
      columns[j] = transform_source<V>({pixel(j), pixel(4 + j), pixel(8 + j), pixel(12 + j)});
    }
    for (size_t i = 0; i < 4; ++i) {
      const auto row =
          transform_source<V>({columns[0][i], columns[1][i], columns[2][i], columns[3][i]});
      store_row<Lanes>(row, i, points + c, apart, lanes);
    }
  });
}

template <class Lanes>
void outputs_pass(const float* points, int64_t apart, int64_t channels, const float* bias,
                  float floor, const std::array<float*, 4>& y) {
  using V = typename Lanes::V;
  for_each_vector<Lanes>(channels, [&](int64_t c, auto lanes) {
    const V start = bias ? Lanes::load(bias + c, lanes) : V{}, least = V{} + floor;
    std::array<std::array<V, 2>, 4> half;
    for (size_t j = 0; j < 4; ++j) {
      half[j] = transform_sums<V>(load_column<Lanes>(points + c, j, apart, lanes));
    }
    for (size_t i = 0; i < 2; ++i) {
      const auto row = transform_sums<V>({half[0][i], half[1][i], half[2][i], half[3][i]});
      for (size_t j = 0; j < 2; ++j) {
        const V v = row[j] + start;
        if (y[i * 2 + j]) Lanes::store(y[i * 2 + j] + c, v < least ? least : v, lanes);
      }
    }
  });
}

template <class Lanes>
void gradient_pass(const TilePasses::Pairs& dy, int64_t channels, float* points, int64_t apart) {
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

template <class Lanes>
void kernels_pass(const float* taps, int64_t channels, bool flipped, float* points, int64_t apart) {
  using V = typename Lanes::V;
  for_each_vector<Lanes>(channels, [&](int64_t c, auto lanes) {
    const auto tap = [&](int64_t i) {
      return Lanes::load(taps + (flipped ? 8 - i : i) * channels + c, lanes);
    };
    std::array<Four<V>, 3> columns;
    for (int64_t j = 0; j < 3; ++j) {
      columns[size_t(j)] = transform_kernel<V>(tap(j), tap(3 + j), tap(6 + j));
    }
    for (size_t i = 0; i < 4; ++i) {
      const Four<V> row = transform_kernel<V>(columns[0][i], columns[1][i], columns[2][i]);
      store_row<Lanes>(row, i, points + c, apart, lanes);
    }
  });
}

template <class Lanes>
void taps_pass(const float* points, int64_t apart, int64_t channels, float* to) {
  using V = typename Lanes::V;
  for_each_vector<Lanes>(channels, [&](int64_t c, auto lanes) {
    std::array<std::array<V, 3>, 4> columns;
    for (size_t j = 0; j < 4; ++j) {
      columns[j] = transform_taps<V>(load_column<Lanes>(points + c, j, apart, lanes));
    }
    for (size_t i = 0; i < 3; ++i) {
      const auto row =
          transform_taps<V>({columns[0][i], columns[1][i], columns[2][i], columns[3][i]});
      for (size_t j = 0; j < 3; ++j) {
        Lanes::store(to + int64_t(i * 3 + j) * channels + c, row[j], lanes);
      }
    }
  });
}

template <class Lanes>
TilePasses tile_passes_of() {
  return {source_pass<Lanes>, outputs_pass<Lanes>, gradient_pass<Lanes>, kernels_pass<Lanes>,
          taps_pass<Lanes>};
}

}  // namespace
}  // namespace cafetiere::winograd
