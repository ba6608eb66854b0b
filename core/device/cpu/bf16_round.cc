// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/bf16_round.h"

#include <algorithm>

#include "core/base/targets.h"
#include "core/device/bfloat16.h"

#if CFT_OTHER_TARGETS
#include <immintrin.h>
#endif

namespace cafetiere::bf16 {
namespace {

void round_plainly(const Rounding& how, const float* sums, int64_t count, uint16_t* to,
                   int64_t distance) {
  for (int64_t i = 0; i < count; ++i, sums += how.height, to += distance) {
    for (int64_t l = 0; l < how.lanes; ++l) {
      float sum = sums[l] + how.start[l];
      if (how.added) {
        sum = from_bfloat16(flushed_bfloat16(sum)) + from_bfloat16(how.added[i * distance + l]);
      }
      to[l] = flushed_bfloat16(std::max(sum, how.floor));
    }
  }
}

#if CFT_OTHER_TARGETS
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")
#pragma GCC diagnostic ignored \
    "-Wmaybe-uninitialized"  // intrinsics leave some values undefined on purpose

template <class Half>
inline __m512 widened(Half half) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(__m256i(half)), 16));
}

template <bool kAdds>
void round_lanes(const Rounding& how, const float* sums, int64_t count, uint16_t* to,
                 int64_t distance) {
  const __m512 floor = _mm512_set1_ps(how.floor);
  const __m512 low = _mm512_loadu_ps(how.start), high = _mm512_loadu_ps(how.start + 16);
  // max() returns the second operand if one is NaN or both are zeros.
  if (how.lanes > 16) {
    const __mmask32 mask = __mmask32((uint64_t{1} << how.lanes) - 1);
    for (int64_t i = 0; i < count; ++i, sums += how.height, to += distance) {
      __m512 a = _mm512_add_ps(_mm512_loadu_ps(sums), low);
      __m512 b = _mm512_add_ps(_mm512_loadu_ps(sums + 16), high);
      if constexpr (kAdds) {
        const __m512i added = _mm512_maskz_loadu_epi16(mask, how.added + i * distance);
        a = _mm512_add_ps(widened(_mm512_cvtneps_pbh(a)),
                          widened(_mm512_extracti64x4_epi64(added, 0)));
        b = _mm512_add_ps(widened(_mm512_cvtneps_pbh(b)),
                          widened(_mm512_extracti64x4_epi64(added, 1)));
      }
      a = _mm512_max_ps(floor, a), b = _mm512_max_ps(floor, b);
      _mm512_mask_storeu_epi16(to, mask, __m512i(_mm512_cvtne2ps_pbh(b, a)));
    }
    return;
  }
  const __mmask16 mask = __mmask16((1U << how.lanes) - 1);
  for (int64_t i = 0; i < count; ++i, sums += how.height, to += distance) {
    __m512 a = _mm512_add_ps(_mm512_loadu_ps(sums), low);
    if constexpr (kAdds) {
      a = _mm512_add_ps(widened(_mm512_cvtneps_pbh(a)),
                        widened(_mm256_maskz_loadu_epi16(mask, how.added + i * distance)));
    }
    a = _mm512_max_ps(floor, a);
    _mm256_mask_storeu_epi16(to, mask, __m256i(_mm512_cvtneps_pbh(a)));
  }
}

void round_by_instruction(const Rounding& how, const float* sums, int64_t count, uint16_t* to,
                          int64_t distance) {
  (how.added ? round_lanes<true> : round_lanes<false>)(how, sums, count, to, distance);
}

#pragma GCC pop_options
#else
constexpr auto round_by_instruction = round_plainly;
#endif

}  // namespace

Round::Round() : Round(rounds_by_instruction()) {}

Round::Round(bool by_instruction) : run_(by_instruction ? round_by_instruction : round_plainly) {}

}  // namespace cafetiere::bf16
