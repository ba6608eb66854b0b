// SPDX-License-Identifier: Apache-2.0
// WideLanes: PlainLanes with AVX-512, using masks instead of short copies. A file of that
// instruction set includes this within its target, after <immintrin.h>.
#pragma once

#include <cstdint>

namespace cafetiere {
namespace {

struct WideLanes {
  typedef float V __attribute__((vector_size(64)));
  typedef uint32_t Bits __attribute__((vector_size(64)));
  typedef int32_t Signed __attribute__((vector_size(64)));
  static constexpr int64_t kCount = 16;
  static constexpr __mmask16 kAll = 0xffff;  // GCC 12 warns about the forms without a mask

  static __mmask16 mask(int64_t lanes) { return __mmask16((1U << lanes) - 1); }
  static V load(const float* from, int64_t lanes) {
    return V(_mm512_maskz_loadu_ps(mask(lanes), from));
  }
  static void store(float* to, V v, int64_t lanes) { _mm512_mask_storeu_ps(to, mask(lanes), v); }
  static V multiply_add(V a, V b, V sums) {
    return V(_mm512_fmadd_ps(__m512(a), __m512(b), __m512(sums)));
  }
  static V load(const uint16_t* from, int64_t lanes) {
    const __m256i narrow = _mm256_maskz_loadu_epi16(mask(lanes), from);
    return V(Bits(_mm512_maskz_cvtepu16_epi32(kAll, narrow)) << 16);
  }
  /// Rounds like to_bfloat16().
  static void store(uint16_t* to, V v, int64_t lanes) {
    const Bits bits = Bits(v), high = bits >> 16;
    const Bits near = (bits + 0x7fff + (high & 1)) >> 16;
    const Bits all = Signed(bits & 0x7fffffff) > 0x7f800000 ? high | 0x40 : near;
    _mm256_mask_storeu_epi16(to, mask(lanes), _mm512_maskz_cvtepi32_epi16(kAll, __m512i(all)));
  }
};

}  // namespace
}  // namespace cafetiere
