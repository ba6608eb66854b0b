// SPDX-License-Identifier: Apache-2.0
// The kernels of bf16x6 with AMX; every processor with AMX also has AVX-512 with bfloat16.
#include <algorithm>
#include <cstdint>

#include "core/base/targets.h"
#include "core/device/cpu/bf16_amx_tiles.h"
#include "core/device/cpu/bf16x6_product.h"

#if CFT_OTHER_TARGETS
#include <immintrin.h>

// After all includes: inline functions defined there must run on any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,prefer-vector-width=512")
// Intrinsics leave some values undefined on purpose.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

#include "core/device/cpu/bf16x6_tiles.h"

namespace cafetiere::bf16x6 {
namespace {

/// Transposes the pairs of a tile: 16 x 16 words of 32 bits.
inline void transpose(uint16_t* tile) {
  __m512i r[16], t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = _mm512_load_si512(tile + i * kBlock);
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    t[2 * i] = _mm512_unpacklo_epi32(r[2 * i], r[2 * i + 1]);
    t[2 * i + 1] = _mm512_unpackhi_epi32(r[2 * i], r[2 * i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0x88);
    t[4 + i] = _mm512_shuffle_i32x4(r[i], r[4 + i], 0xdd);
    t[8 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0x88);
    t[12 + i] = _mm512_shuffle_i32x4(r[8 + i], r[12 + i], 0xdd);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0x88);
    r[8 + i] = _mm512_shuffle_i32x4(t[i], t[8 + i], 0xdd);
    r[4 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0x88);
    r[12 + i] = _mm512_shuffle_i32x4(t[4 + i], t[12 + i], 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) _mm512_store_si512(tile + i * kBlock, r[i]);
}

/// Writes a tile of each plane; they are two tiles apart.
struct WideSplitter {
  uint16_t* to;

  void line(int64_t i, const float* low, int64_t low_count, const float* high,
            int64_t high_count) const {
    __m512 l = load(low, low_count), h = load(high, high_count);
#pragma GCC unroll 3
    for (int plane = 0; plane < kPlanes; ++plane) {
      const __m512i both = __m512i(_mm512_cvtne2ps_pbh(h, l));
      _mm512_store_si512(to + plane * 2 * kTile + i * kBlock, both);
      l = _mm512_sub_ps(l, widened(_mm512_castsi512_si256(both)));
      h = _mm512_sub_ps(h, widened(_mm512_extracti64x4_epi64(both, 1)));
    }
  }
  void pairs(int64_t i, const float* even, int64_t even_count, const float* odd,
             int64_t odd_count) const {
    __m512 e = load(even, even_count), o = load(odd, odd_count);
#pragma GCC unroll 3
    for (int plane = 0; plane < kPlanes; ++plane) {
      const __m512i pairs =
          _mm512_permutexvar_epi16(interleaving(), __m512i(_mm512_cvtne2ps_pbh(o, e)));
      _mm512_store_si512(to + plane * 2 * kTile + i * kBlock, pairs);
      const __m512i upper = _mm512_and_si512(pairs, _mm512_set1_epi32(int(0xffff0000)));
      e = _mm512_sub_ps(e, _mm512_castsi512_ps(_mm512_slli_epi32(pairs, 16)));
      o = _mm512_sub_ps(o, _mm512_castsi512_ps(upper));
    }
  }
  static void turn(uint16_t* tile) { transpose(tile); }

 private:
  static __m512 load(const float* from, int64_t count) {
    return _mm512_maskz_loadu_ps(__mmask16((1U << count) - 1), from);
  }
  static __m512 widened(__m256i bits) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static __m512i interleaving() {
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i odd = _mm512_slli_epi32(_mm512_add_epi32(lanes, _mm512_set1_epi32(16)), 16);
    return _mm512_or_si512(lanes, odd);
  }
};

void multiply(const uint16_t* rows, const uint16_t* pairs, int64_t depth, const Target& to) {
  const auto sum = [](const uint16_t* r, const uint16_t* p, int64_t d, float* sums) {
    bf16::AmxTiles tiles(true);
    sum_blocks(tiles, r, p, d, sums);
  };
  multiply_block(sum, rows, pairs, depth, to);
}

}  // namespace

const Kernels& amx_kernels() {
  static constexpr Kernels kAmx{split_matrix<WideSplitter>, multiply};
  return kAmx;
}

}  // namespace cafetiere::bf16x6

#pragma GCC pop_options
#else
namespace cafetiere::bf16x6 {
const Kernels& amx_kernels() { return plain_kernels(); }
}  // namespace cafetiere::bf16x6
#endif
