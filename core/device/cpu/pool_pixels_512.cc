// SPDX-License-Identifier: Apache-2.0
// Pooling by AVX-512: 16 numbers a vector, and masks in place of short copies.
#include <cfloat>
#include <cstdint>
#include <type_traits>

#include "core/base/targets.h"
#include "core/device/cpu/lane_chunks.h"
#include "core/device/cpu/pool_pixels.h"

#if CFT_OTHER_TARGETS
#include <immintrin.h>

// After all includes: what they define inline must run anywhere.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")

#include "core/device/cpu/pool_pixels_rows.h"

namespace cafetiere {
namespace {

struct WideLanes {
  typedef float V __attribute__((vector_size(64)));
  typedef uint32_t Bits __attribute__((vector_size(64)));
  typedef int32_t Signed __attribute__((vector_size(64)));
  static constexpr int64_t kCount = 16;
  static constexpr __mmask16 kAll = 0xffff;  // unmasked, GCC 12 warns of its own intrinsics

  static __mmask16 mask(int64_t lanes) { return __mmask16((1U << lanes) - 1); }
  static V load(const float* from, int64_t lanes) {
    return V(_mm512_maskz_loadu_ps(mask(lanes), from));
  }
  static void store(float* to, V v, int64_t lanes) { _mm512_mask_storeu_ps(to, mask(lanes), v); }
  static V load(const uint16_t* from, int64_t lanes) {
    return V(Bits(_mm512_maskz_cvtepu16_epi32(kAll, _mm256_maskz_loadu_epi16(mask(lanes), from))) << 16);
  }
  /// As to_bfloat16() rounds.
  static void store(uint16_t* to, V v, int64_t lanes) {
    const Bits bits = Bits(v), high = bits >> 16;
    const Bits near = (bits + 0x7fff + (high & 1)) >> 16;
    const Bits all = Signed(bits & 0x7fffffff) > 0x7f800000 ? high | 0x40 : near;
    _mm256_mask_storeu_epi16(to, mask(lanes), _mm512_maskz_cvtepi32_epi16(kAll, __m512i(all)));
  }
};

}  // namespace

template <class T>
PoolRows<T> wide_pool_rows() {
  return pool_rows_of<WideLanes, T>();
}

}  // namespace cafetiere

#pragma GCC pop_options
#else
namespace cafetiere {
template <class T>
PoolRows<T> wide_pool_rows() {
  return plain_pool_rows<T>();
}
}  // namespace cafetiere
#endif

namespace cafetiere {
template PoolRows<float> wide_pool_rows();
template PoolRows<uint16_t> wide_pool_rows();
}  // namespace cafetiere
