// SPDX-License-Identifier: Apache-2.0
// The sums of image_dots.h: the file of each instruction set includes them once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "core/device/cpu/image_dots.h"

namespace cafetiere::image_dots {
namespace {

constexpr int64_t kMostColumns = 5;

/// Outputs at a time: their sums, and a source vector of each column, stay in registers.
template <class Lanes>
constexpr int64_t kOutputs = Lanes::kCount == kLanes ? kMostOutputs : 2;

/// Adds to the sums [first, first + Lanes::kCount) of some columns and outputs.
template <class Lanes, int64_t kColumns, int64_t kOuts>
void add_tile(const PixelRun& r, int64_t column, int64_t output, int64_t first) {
  using V = typename Lanes::V;
  std::array<std::array<V, kOuts>, kColumns> sum;
  const auto at = [&](int64_t k, int64_t o) {
    return r.sums + (column + k) * r.sums_step + (output + o) * kLanes + first;
  };
  constexpr std::integral_constant<int64_t, Lanes::kCount> kAll;
#pragma GCC unroll 5
  for (int64_t k = 0; k < kColumns; ++k) {
#pragma GCC unroll 4
    for (int64_t o = 0; o < kOuts; ++o) sum[k][o] = Lanes::load(at(k, o), kAll);
  }
  const auto add = [&](const float* x, const float* dy, auto lanes) {
    std::array<V, kColumns> source;
#pragma GCC unroll 5
    for (int64_t k = 0; k < kColumns; ++k) source[k] = Lanes::load(x + k * r.column_step, lanes);
#pragma GCC unroll 4
    for (int64_t o = 0; o < kOuts; ++o) {
      const V gradient = Lanes::load(dy + o * r.images, lanes);
#pragma GCC unroll 5
      for (int64_t k = 0; k < kColumns; ++k)
        sum[k][o] = Lanes::multiply_add(gradient, source[k], sum[k][o]);
    }
  };
  const float* x = r.src + column * r.column_step + first;
  const float* dy = r.diff + output * r.images + first;
  const int64_t whole = r.images / kLanes * kLanes;
  const int64_t rest = std::clamp<int64_t>(r.images - whole - first, 0, Lanes::kCount);
  for (int64_t p = 0; p < r.pixels; ++p, x += r.src_step, dy += r.diff_step) {
    for (int64_t i = 0; i < whole; i += kLanes) add(x + i, dy + i, kAll);
    if (rest > 0) add(x + whole, dy + whole, rest);
  }
#pragma GCC unroll 5
  for (int64_t k = 0; k < kColumns; ++k) {
#pragma GCC unroll 4
    for (int64_t o = 0; o < kOuts; ++o) Lanes::store(at(k, o), sum[k][o], kAll);
  }
}

template <class Lanes, int64_t kColumns>
void add_columns(const PixelRun& r, int64_t column) {
  for (int64_t first = 0; first < kLanes; first += Lanes::kCount) {
    int64_t o = 0;
    for (; o + kOutputs<Lanes> <= r.outputs; o += kOutputs<Lanes>) {
      add_tile<Lanes, kColumns, kOutputs<Lanes>>(r, column, o, first);
    }
    for (; o < r.outputs; ++o) add_tile<Lanes, kColumns, 1>(r, column, o, first);
  }
}

template <class Lanes>
void add_run_of(const PixelRun& r) {
  int64_t column = 0;
  for (; column + kMostColumns < r.columns; column += kMostColumns) {
    add_columns<Lanes, kMostColumns>(r, column);
  }
  switch (r.columns - column) {
    case 1:
      return add_columns<Lanes, 1>(r, column);
    case 2:
      return add_columns<Lanes, 2>(r, column);
    case 3:
      return add_columns<Lanes, 3>(r, column);
    case 4:
      return add_columns<Lanes, 4>(r, column);
    default:
      return add_columns<Lanes, kMostColumns>(r, column);
  }
}

}  // namespace
}  // namespace cafetiere::image_dots
