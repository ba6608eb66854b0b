// SPDX-License-Identifier: Apache-2.0
// The kernels of bf16x6 in C++, bitwise the same on any processor.
#include <algorithm>
#include <cmath>

#include "core/base/bfloat16.h"
#include "core/device/cpu/bf16_plain_tiles.h"
#include "core/device/cpu/bf16x6_tiles.h"
#include "core/device/isa.h"

namespace cafetiere::bf16x6 {
namespace {

/// Writes a tile of each plane; they are two tiles apart.
struct PlainSplitter {
  uint16_t* to;

  void line(int64_t i, const float* low, int64_t low_count, const float* high,
            int64_t high_count) const {
    for (int64_t l = 0; l < kHalf; ++l) {
      set(i, l, l < low_count ? low[l] : 0);
      set(i, kHalf + l, l < high_count ? high[l] : 0);
    }
  }
  void pairs(int64_t i, const float* even, int64_t even_count, const float* odd,
             int64_t odd_count) const {
    for (int64_t l = 0; l < kHalf; ++l) {
      set(i, 2 * l, l < even_count ? even[l] : 0);
      set(i, 2 * l + 1, l < odd_count ? odd[l] : 0);
    }
  }
  /// Transposes the pairs of a tile.
  static void turn(uint16_t* tile) {
    for (int64_t i = 0; i < kHalf; ++i) {
      for (int64_t l = i + 1; l < kHalf; ++l) {
        std::swap_ranges(tile + i * kBlock + 2 * l, tile + i * kBlock + 2 * l + 2,
                         tile + l * kBlock + 2 * i);
      }
    }
  }

 private:
  void set(int64_t line, int64_t at, float value) const {
    for (int64_t plane = 0; plane < kPlanes; ++plane) {
      const bool normal = std::fpclassify(value) != FP_SUBNORMAL;  // as the instruction
      const uint16_t bits = normal ? to_bfloat16(value) : uint16_t(std::signbit(value) << 15);
      to[plane * 2 * kTile + line * kBlock + at] = bits;
      value -= from_bfloat16(bits);
    }
  }
};

void multiply(const uint16_t* rows, const uint16_t* pairs, int64_t depth, const Target& to) {
  const auto sum = [](const uint16_t* r, const uint16_t* p, int64_t d, float* sums) {
    const FloatMode flush(Denormals::kZero);
    bf16::PlainTiles tiles;
    sum_blocks(tiles, r, p, d, sums);
  };
  multiply_block(sum, rows, pairs, depth, to);
}

}  // namespace

const Kernels& plain_kernels() {
  static constexpr Kernels kPlain{split_matrix<PlainSplitter>, multiply};
  return kPlain;
}

const Kernels& kernels() { return instruction_set() == "amx" ? amx_kernels() : plain_kernels(); }

}  // namespace cafetiere::bf16x6
