// SPDX-License-Identifier: Apache-2.0
#include "core/device/bfloat16.h"

#include "core/base/targets.h"

#if CFT_OTHER_TARGETS
#include <immintrin.h>
#endif

namespace cafetiere {
namespace {

void narrow_plainly(const float* from, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = flushed_bfloat16(from[i]);
}

#if CFT_OTHER_TARGETS
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")
#pragma GCC diagnostic ignored \
    "-Wmaybe-uninitialized"  // intrinsics leave some values undefined on purpose

void narrow_by_instruction(const float* from, int64_t count, uint16_t* to) {
  int64_t i = 0;
  for (; i + 32 <= count; i += 32) {
    const __m512bh both =
        _mm512_cvtne2ps_pbh(_mm512_loadu_ps(from + i + 16), _mm512_loadu_ps(from + i));
    _mm512_storeu_si512(to + i, __m512i(both));
  }
  narrow_plainly(from + i, count - i, to + i);
}

void widen_by_instruction(const uint16_t* from, int64_t count, float* to) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m256i some = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + i));
    _mm512_storeu_si512(to + i, _mm512_slli_epi32(_mm512_cvtepu16_epi32(some), 16));
  }
  widen_bfloat16(from + i, size_t(count - i), to + i);
}

#pragma GCC pop_options
#endif

}  // namespace

#if CFT_OTHER_TARGETS
bool rounds_by_instruction() {
  return __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512bw");
}

void narrow(const float* from, int64_t count, uint16_t* to) {
  (rounds_by_instruction() ? narrow_by_instruction : narrow_plainly)(from, count, to);
}

void widen(const uint16_t* from, int64_t count, float* to) {
  if (rounds_by_instruction()) return widen_by_instruction(from, count, to);
  widen_bfloat16(from, size_t(count), to);
}
#else
bool rounds_by_instruction() { return false; }
void narrow(const float* from, int64_t count, uint16_t* to) { narrow_plainly(from, count, to); }
void widen(const uint16_t* from, int64_t count, float* to) {
  widen_bfloat16(from, size_t(count), to);
}
#endif

}  // namespace cafetiere
