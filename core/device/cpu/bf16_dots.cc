// SPDX-License-Identifier: Apache-2.0
// Products of bfloat16 with AVX512-BF16's dot products of pairs: blocks of 12 x 32 sums in
// registers.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/base/targets.h"
#include "core/device/cpu/bf16_product.h"

#if CFT_OTHER_TARGETS
#include <immintrin.h>

// After all includes: inline functions defined there must run on any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16")

namespace cafetiere::bf16 {
namespace {

constexpr int64_t kRows = 12;    // columns of C with sums in registers, two vectors each
constexpr int64_t kDepth = 256;  // per pass over C: a panel of A that stays in the L1 cache

/// The factors of a pass over C: `count` products of `depth` k each, starting at k `first`.
struct Pass {
  const uint16_t* const* a;
  const uint16_t* const* b;
  int64_t count, first, depth;
  bool add;
};

/// The two numbers at k; the second is zero at the end of an odd column.
template <bool kWhole>
inline __m512bh pair(const uint16_t* at) {
  int bits = 0;
  std::memcpy(&bits, at, kWhole ? 4 : 2);
  return __m512bh(_mm512_set1_epi32(bits));
}

template <int64_t kN, int64_t kVectors, bool kWhole>
inline void add_pair(const uint16_t* a, const uint16_t* b, int64_t ldb,
                     __m512 (&sums)[kN][kVectors]) {
  __m512bh weights[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) weights[v] = __m512bh(_mm512_loadu_si512(a + 32 * v));
#pragma GCC unroll 12
  for (int64_t j = 0; j < kN; ++j) {
    const __m512bh factor = pair<kWhole>(b + j * ldb);
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      sums[j][v] = _mm512_dpbf16_ps(sums[j][v], weights[v], factor);
    }
  }
}

template <int64_t kN, int64_t kVectors>
void multiply_rows(const Bf16Product& p, const Pass& pass, int64_t m, int64_t n, float* c) {
  __m512 sums[kN][kVectors];
  float* const out = c + n * p.ldc + m;
#pragma GCC unroll 12
  for (int64_t j = 0; j < kN; ++j) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      sums[j][v] = pass.add ? _mm512_loadu_ps(out + j * p.ldc + 16 * v) : _mm512_setzero_ps();
    }
  }
  for (int64_t i = 0; i < pass.count; ++i) {
    const uint16_t* a = pass.a[i] + pass.first * p.lda + 2 * m;
    const uint16_t* b = pass.b[i] + n * p.ldb + pass.first;
    for (int64_t k = 0; k + 2 <= pass.depth; k += 2, a += 2 * p.lda, b += 2) {
      add_pair<kN, kVectors, true>(a, b, p.ldb, sums);
    }
    if (pass.depth % 2 == 1) add_pair<kN, kVectors, false>(a, b, p.ldb, sums);
  }
#pragma GCC unroll 12
  for (int64_t j = 0; j < kN; ++j) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      _mm512_storeu_ps(out + j * p.ldc + 16 * v, sums[j][v]);
    }
  }
}

using MultiplyRows = void (*)(const Bf16Product&, const Pass&, int64_t m, int64_t n, float* c);
template <int64_t kVectors>
constexpr std::array<MultiplyRows, kRows + 1> kMultiply = {nullptr,
                                                           multiply_rows<1, kVectors>,
                                                           multiply_rows<2, kVectors>,
                                                           multiply_rows<3, kVectors>,
                                                           multiply_rows<4, kVectors>,
                                                           multiply_rows<5, kVectors>,
                                                           multiply_rows<6, kVectors>,
                                                           multiply_rows<7, kVectors>,
                                                           multiply_rows<8, kVectors>,
                                                           multiply_rows<9, kVectors>,
                                                           multiply_rows<10, kVectors>,
                                                           multiply_rows<11, kVectors>,
                                                           multiply_rows<12, kVectors>};

/// One pass over C, divided into groups of columns as evenly as possible.
void multiply_pass(const Bf16Product& p, const Pass& pass, float* c) {
  const int64_t groups = (p.n + kRows - 1) / kRows;
  for (int64_t m = 0; m < p.m; m += 32) {
    const auto& multiply = p.m - m > 16 ? kMultiply<2> : kMultiply<1>;
    for (int64_t g = 0; g < groups; ++g) {
      const int64_t n = g * p.n / groups, end = (g + 1) * p.n / groups;
      multiply[size_t(end - n)](p, pass, m, n, c);
    }
  }
}

}  // namespace

void multiply_by_dots(const Bf16Product& p, const uint16_t* const* a, const uint16_t* const* b,
                      float* c, int64_t count) {
  if (p.k <= kDepth) {
    const int64_t some = std::max<int64_t>(1, kDepth / p.k);
    for (int64_t i = 0; i < count; i += some) {
      multiply_pass(p, {a + i, b + i, std::min(some, count - i), 0, p.k, p.add || i > 0}, c);
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t k = 0; k < p.k; k += kDepth) {
      multiply_pass(p, {a + i, b + i, 1, k, std::min(kDepth, p.k - k), p.add || i + k > 0}, c);
    }
  }
}

}  // namespace cafetiere::bf16

#pragma GCC pop_options
#else
namespace cafetiere::bf16 {
void multiply_by_dots(const Bf16Product& p, const uint16_t* const* a, const uint16_t* const* b,
                      float* c, int64_t count) {
  multiply_by_tiles(p, a, b, c, count);
}
}  // namespace cafetiere::bf16
#endif
