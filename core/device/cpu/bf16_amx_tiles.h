// SPDX-License-Identifier: Apache-2.0
// AMX's tile operations. In assembly, because the compiler's intrinsics accept only literals for
// tiles, and declare neither the memory that loads read nor all of a configuration.
#pragma once

#include <algorithm>

#include "core/device/cpu/bf16_tiles.h"

namespace cafetiere::bf16 {

/// Copies the part of a tile inside a matrix of pairs or rows: `height` lines of `width` elements;
/// the rest of 16 x 32 is zero.
inline void copy_padded(const uint16_t* from, int64_t ld, int64_t height, int64_t width,
                        uint16_t* to) {
  std::fill_n(to, kTileRows * kTileDepth, uint16_t(0));
  for (int64_t r = 0; r < height; ++r) std::copy_n(from + r * ld, width, to + r * kTileDepth);
}

/// Tiles smaller than 16 x 64 bytes are copied first, so that one configuration serves all and
/// nothing is read beyond a matrix.
class AmxTiles {
 public:
  explicit AmxTiles(bool whole_rows) : whole_rows_(whole_rows) {}

  template <int kTile>
  void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  void load_sums(const float* from, int64_t ld, int64_t height) {
    if (height < kTileRows) {
      for (int64_t r = 0; r < height; ++r) {
        std::copy_n(from + r * ld, kTileRows, sums_ + r * kTileRows);
      }
      from = sums_, ld = kTileRows;
    }
    load<kTile>(from, ld * int64_t(sizeof(float)));
  }
  template <int kTile>
  void load_rows(const uint16_t* from, int64_t ld, int64_t height, int64_t depth) {
    if ((height < kTileRows && !whole_rows_) || depth < kTileDepth) {
      copy_padded(from, ld, height, depth, copies_[kTile - 4]);
      from = copies_[kTile - 4], ld = kTileDepth;
    }
    load<kTile>(from, ld * int64_t(sizeof(uint16_t)));
  }
  template <int kTile>
  void load_pairs(const uint16_t* from, int64_t ld, int64_t depth) {
    if (depth < kTileDepth) {
      copy_padded(from, ld, (depth + 1) / 2, 2 * kTileRows, copies_[kTile - 4]);
      from = copies_[kTile - 4], ld = kTileDepth;
    }
    load<kTile>(from, ld * int64_t(sizeof(uint16_t)));
  }
  template <int kSums, int kRows, int kPairs>
  void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSums), "i"(kRows), "i"(kPairs));
  }
  template <int kTile>
  void store(float* to, int64_t ld, int64_t height) {
    const bool whole = height == kTileRows;
    const int64_t bytes = (whole ? ld : kTileRows) * int64_t(sizeof(float));
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(whole ? to : sums_), "r"(bytes), "i"(kTile)
                 : "memory");
    for (int64_t r = 0; r < height && !whole; ++r) {
      std::copy_n(sums_ + r * kTileRows, kTileRows, to + r * ld);
    }
  }

 private:
  template <int kTile>
  static void load(const void* from, int64_t bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(bytes), "i"(kTile) : "memory");
  }

  const bool whole_rows_;
  alignas(64) uint16_t copies_[4][kTileRows * kTileDepth];
  alignas(64) float sums_[kTileRows * kTileRows];
};

}  // namespace cafetiere::bf16
