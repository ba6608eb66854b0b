// SPDX-License-Identifier: Apache-2.0
// Max pooling with AVX-512: 32 numbers per vector, and masks instead of short copies.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "core/base/targets.h"
#include "core/device/cpu/bf16_max_pooling.h"

#if CFT_OTHER_TARGETS
#include <immintrin.h>

// After all includes: inline functions defined there must run on any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,prefer-vector-width=512")

#include "core/device/cpu/bf16_max_pooling_rows.h"

namespace cafetiere::bf16 {
namespace {

struct WideMemory {
  using V = Vectors<64>;
  static __mmask32 mask(int64_t lanes) { return __mmask32((uint64_t{1} << lanes) - 1); }
  static V::Bits load(const uint16_t* from, int64_t lanes) {
    return V::Bits(_mm512_maskz_loadu_epi16(mask(lanes), from));
  }
  static V::Bits load_where(V::Key where, const uint16_t* from, int64_t lanes) {
    return V::Bits(
        _mm512_maskz_loadu_epi16(_mm512_movepi16_mask(__m512i(where)) & mask(lanes), from));
  }
  static void store(uint16_t* to, V::Bits v, int64_t lanes) {
    _mm512_mask_storeu_epi16(to, mask(lanes), __m512i(v));
  }
};

}  // namespace

MaxPoolRows wide_max_pool_rows() { return {max_rows<WideMemory>, backward_rows<WideMemory>}; }

}  // namespace cafetiere::bf16

#pragma GCC pop_options
#else
namespace cafetiere::bf16 {
MaxPoolRows wide_max_pool_rows() { return plain_max_pool_rows(); }
}  // namespace cafetiere::bf16
#endif
