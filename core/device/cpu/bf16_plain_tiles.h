// SPDX-License-Identifier: Apache-2.0
// AMX's tile operations in C++, from the definition of the instructions: bitwise the same on any
// processor.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/bfloat16.h"
#include "core/base/float_mode.h"
#include "core/device/cpu/bf16_tiles.h"

namespace cafetiere::bf16 {

class PlainTiles {
 public:
  template <int kTile>
  void zero() {
    for (Sums& row : sums_[kTile]) row.fill(0);
  }
  template <int kTile>
  void load_sums(const float* from, int64_t ld, int64_t height) {
    zero<kTile>();
    for (int64_t r = 0; r < height; ++r) {
      std::copy_n(from + r * ld, kTileRows, sums_[kTile][size_t(r)].data());
    }
  }
  template <int kTile>
  void load_rows(const uint16_t* from, int64_t ld, int64_t height, int64_t depth) {
    Rows& rows = rows_[kTile - 4];
    rows.height = height;
    for (int64_t r = 0; r < height; ++r) {
      std::array<float, kTileDepth>& to = rows.values[size_t(r)];
      to.fill(0);
      widen_bfloat16(from + r * ld, size_t(depth), to.data());
    }
  }
  template <int kTile>
  void load_pairs(const uint16_t* from, int64_t ld, int64_t depth) {
    Pairs& pairs = pairs_[kTile - 6];
    for (int64_t k = 0; k < kTileDepth; k += 2) {
      for (int64_t m = 0; m < kTileRows; ++m) {
        const uint16_t* const pair = from + k / 2 * ld + 2 * m;
        pairs[size_t(k)][size_t(m)] = k < depth ? from_bfloat16(pair[0]) : 0;
        pairs[size_t(k) + 1][size_t(m)] = k < depth ? from_bfloat16(pair[1]) : 0;
      }
    }
  }
  template <int kSums, int kRows, int kPairs>
  void multiply() {
    const Rows& rows = rows_[kRows - 4];
    for (int64_t r = 0; r < rows.height; ++r) {
      multiply_row(rows.values[size_t(r)], pairs_[kPairs - 6], sums_[kSums][size_t(r)]);
    }
  }
  template <int kTile>
  void store(float* to, int64_t ld, int64_t height) {
    for (int64_t r = 0; r < height; ++r) {
      std::copy_n(sums_[kTile][size_t(r)].data(), kTileRows, to + r * ld);
    }
  }

 private:
  using Sums = std::array<float, kTileRows>;
  using Pairs = std::array<Sums, kTileDepth>;
  struct Rows {
    int64_t height = 0;
    std::array<std::array<float, kTileDepth>, kTileRows> values;
  };

  static void multiply_row(const std::array<float, kTileDepth>& row, const Pairs& pairs,
                           Sums& sums) {
    Sums even{}, odd{};
    for (size_t k = 0; k < size_t(kTileDepth); k += 2) {
      for (size_t m = 0; m < size_t(kTileRows); ++m) {
        even[m] = std::fma(row[k], pairs[k][m], even[m]);
        odd[m] = std::fma(row[k + 1], pairs[k + 1][m], odd[m]);
      }
    }
    for (size_t m = 0; m < size_t(kTileRows); ++m) sums[m] += even[m] + odd[m];
  }

  std::array<Sums, kTileRows> sums_[4];
  Rows rows_[2];
  Pairs pairs_[2];
};

}  // namespace cafetiere::bf16
