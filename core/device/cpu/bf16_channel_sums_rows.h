// SPDX-License-Identifier: Apache-2.0
// Channel sums for any vector width: the file of each instruction set includes this once, with its
// vector operations.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/device/cpu/bf16_channel_sums.h"

namespace cafetiere::bf16 {
namespace {

constexpr int64_t kRun = 16;             // rows added in float32
constexpr int64_t kMostTotals = 1024;    // channels whose sums fit into the L1 cache
constexpr int64_t kTogetherVectors = 4;  // vectors whose sums stay in registers
constexpr int64_t kCacheNumbers = 32;    // per cache line

enum class Terms { kValues, kSquares, kProducts };

template <class V, Terms kTerms>
struct RunSums {
  static constexpr int64_t kLanes = V::kLanes;
  using Float = typename V::Float;

  const ChannelSums& of;
  double *totals, *product_totals;  // starting at channel `first`
  int64_t first;                    // of the channels that fit into the cache

  /// Adds kVectors vectors of channels over a run of rows; the last vector may have fewer lanes.
  template <int64_t kVectors>
  void add(int64_t row, int64_t rows, int64_t c, int64_t lanes) const {
    Float sums[kVectors] = {}, products[kVectors] = {}, centre[kVectors] = {};
    if (kTerms != Terms::kValues && of.centre) {
      for (int64_t v = 0; v < kVectors; ++v) centre[v] = V::load(of.centre + c + v * kLanes, lanes);
    }
    int64_t at = row * of.channels + c;
    for (int64_t r = 0; r < rows; ++r, at += of.channels) {
      fetch<kVectors>(at + kRun * of.channels);
      for (int64_t v = 0; v < kVectors; ++v) {
        const Float x = V::load(of.x + at + v * kLanes, lanes);
        if constexpr (kTerms == Terms::kSquares) {
          const Float d = x - centre[v];
          sums[v] += d * d;
        } else {
          sums[v] += x;
        }
        if constexpr (kTerms == Terms::kProducts) {
          products[v] += x * (V::load(of.y + at + v * kLanes, lanes) - centre[v]);
        }
      }
    }
    for (int64_t v = 0; v < kVectors; ++v) {
      const int64_t t = c - first + v * kLanes;
      for (int64_t l = 0; l < lanes; ++l) totals[t + l] += double(sums[v][l]);
      if constexpr (kTerms == Terms::kProducts) {
        for (int64_t l = 0; l < lanes; ++l) product_totals[t + l] += double(products[v][l]);
      }
    }
  }

 private:
  template <int64_t kVectors>
  void fetch(int64_t at) const {
    for (int64_t i = 0; i < kVectors * kLanes; i += kCacheNumbers) {
      __builtin_prefetch(of.x + at + i);
      if constexpr (kTerms == Terms::kProducts) __builtin_prefetch(of.y + at + i);
    }
  }
};

template <class V, Terms kTerms>
void sum_terms(const ChannelSums& of) {
  constexpr int64_t kLanes = V::kLanes;
  constexpr int64_t kPiece = kTogetherVectors * kLanes;
  for (int64_t first = 0; first < of.channels; first += kMostTotals) {
    const int64_t end = std::min(of.channels, first + kMostTotals);
    double totals[kMostTotals], products[kMostTotals];
    std::fill_n(totals, end - first, 0.0);
    if (kTerms == Terms::kProducts) std::fill_n(products, end - first, 0.0);
    const RunSums<V, kTerms> run{of, totals, products, first};
    for (int64_t row = 0; row < of.rows; row += kRun) {
      const int64_t rows = std::min(kRun, of.rows - row);
      int64_t c = first;
      for (; c + kPiece <= end; c += kPiece) {
        run.template add<kTogetherVectors>(row, rows, c, kLanes);
      }
      for (; c + kLanes <= end; c += kLanes) run.template add<1>(row, rows, c, kLanes);
      if (c < end) run.template add<1>(row, rows, c, end - c);
    }
    for (int64_t c = first; c < end; ++c) {
      of.sums[c] = float(totals[c - first]);
      if (kTerms == Terms::kProducts) of.products[c] = float(products[c - first]);
    }
  }
}

template <class V>
void sum_rows(const ChannelSums& of) {
  if (of.y) return sum_terms<V, Terms::kProducts>(of);
  if (of.centre) return sum_terms<V, Terms::kSquares>(of);
  sum_terms<V, Terms::kValues>(of);
}

}  // namespace
}  // namespace cafetiere::bf16
