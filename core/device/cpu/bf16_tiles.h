// SPDX-License-Identifier: Apache-2.0
// A product of bfloat16 in blocks of 32 x 32 sums, written in terms of AMX's tile operations: zero,
// load, multiply, store. Tiles 0 to 3 are sums (2 i + j: rows i, vector j), 4 and 5 rows of B, 6
// and 7 pairs of A.
#pragma once

#include <algorithm>

#include "core/device/cpu/bf16_product.h"

namespace cafetiere::bf16 {

inline constexpr int64_t kTileRows = 16;
inline constexpr int64_t kTileDepth = 32;  ///< k per tile

/// One block: `rows` <= 32 columns of C starting at column n0, kVectors vectors of 16 starting at
/// row m0.
template <int kRows, int kVectors, class Tiles>
void multiply_block(Tiles& tiles, const Bf16Product& p, const uint16_t* const* a,
                    const uint16_t* const* b, float* c, int64_t count, int64_t m0, int64_t n0,
                    int64_t rows) {
  const int64_t lower = std::min(rows, kTileRows), upper = rows - lower;
  float* const sums = c + n0 * p.ldc + m0;
  float* const below = sums + kTileRows * p.ldc;
  const auto begin = [&]<int kTile>(const float* from, int64_t height) {
    if (p.add)
      tiles.template load_sums<kTile>(from, p.ldc, height);
    else
      tiles.template zero<kTile>();
  };
  begin.template operator()<0>(sums, lower);
  if constexpr (kVectors > 1) begin.template operator()<1>(sums + kTileRows, lower);
  if constexpr (kRows > 1) begin.template operator()<2>(below, upper);
  if constexpr (kRows > 1 && kVectors > 1) begin.template operator()<3>(below + kTileRows, upper);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < p.k; k += kTileDepth) {
      const int64_t depth = std::min(kTileDepth, p.k - k);
      const uint16_t* const from_b = b[i] + n0 * p.ldb + k;
      const uint16_t* const from_a = a[i] + k * p.lda + 2 * m0;
      tiles.template load_rows<4>(from_b, p.ldb, lower, depth);
      tiles.template load_pairs<6>(from_a, 2 * p.lda, depth);
      tiles.template multiply<0, 4, 6>();
      if constexpr (kVectors > 1) {
        tiles.template load_pairs<7>(from_a + 2 * kTileRows, 2 * p.lda, depth);
        tiles.template multiply<1, 4, 7>();
      }
      if constexpr (kRows > 1) {
        tiles.template load_rows<5>(from_b + kTileRows * p.ldb, p.ldb, upper, depth);
        tiles.template multiply<2, 5, 6>();
        if constexpr (kVectors > 1) tiles.template multiply<3, 5, 7>();
      }
    }
  }
  tiles.template store<0>(sums, p.ldc, lower);
  if constexpr (kVectors > 1) tiles.template store<1>(sums + kTileRows, p.ldc, lower);
  if constexpr (kRows > 1) tiles.template store<2>(below, p.ldc, upper);
  if constexpr (kRows > 1 && kVectors > 1) {
    tiles.template store<3>(below + kTileRows, p.ldc, upper);
  }
}

/// All blocks.
template <class Tiles>
void multiply_blocks(Tiles& tiles, const Bf16Product& p, const uint16_t* const* a,
                     const uint16_t* const* b, float* c, int64_t count) {
  for (int64_t m = 0; m < p.m; m += 2 * kTileRows) {
    const bool two = p.m - m > kTileRows;
    for (int64_t n = 0; n < p.n; n += 2 * kTileRows) {
      const int64_t rows = std::min(2 * kTileRows, p.n - n);
      const auto block = rows > kTileRows
                             ? (two ? multiply_block<2, 2, Tiles> : multiply_block<2, 1, Tiles>)
                             : (two ? multiply_block<1, 2, Tiles> : multiply_block<1, 1, Tiles>);
      block(tiles, p, a, b, c, count, m, n, rows);
    }
  }
}

}  // namespace cafetiere::bf16
