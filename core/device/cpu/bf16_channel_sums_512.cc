// SPDX-License-Identifier: Apache-2.0
// Sums of channels with AVX-512: 16 numbers per vector.
#include <algorithm>
#include <cstdint>

#include "core/base/targets.h"
#include "core/device/cpu/bf16_channel_sums.h"

#if CFT_OTHER_TARGETS
#include <immintrin.h>

// After all includes: inline functions defined there must run on any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")
#pragma GCC diagnostic ignored \
    "-Wmaybe-uninitialized"  // intrinsics leave some values undefined on purpose

#include "core/device/cpu/bf16_channel_sums_rows.h"

namespace cafetiere::bf16 {
namespace {

struct Sixteens {
  static constexpr int64_t kLanes = 16;
  using Float = __m512;
  static __mmask16 mask(int64_t lanes) { return __mmask16((1U << lanes) - 1); }
  static __m512 load(const uint16_t* from, int64_t lanes) {
    const __m256i bits = _mm256_maskz_loadu_epi16(mask(lanes), from);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static __m512 load(const float* from, int64_t lanes) {
    return _mm512_maskz_loadu_ps(mask(lanes), from);
  }
};

}  // namespace

void sum_channels_512(const ChannelSums& of) { sum_rows<Sixteens>(of); }

}  // namespace cafetiere::bf16

#pragma GCC pop_options
#else
namespace cafetiere::bf16 {
void sum_channels_512(const ChannelSums& of) { sum_channels_plainly(of); }
}  // namespace cafetiere::bf16
#endif
