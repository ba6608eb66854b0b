// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu/rest_rows.h"

#include "core/device/cpu/plain_lanes.h"
#include "core/device/isa.h"

namespace cafetiere {

#if defined(__AVX2__) && defined(__FMA__)
namespace {

constexpr int64_t kColumns = 8;  // of C, with sums in registers

Simd8 load_masked(const float* from, __m256i mask) { return Simd8(_mm256_maskload_ps(from, mask)); }

/// Stores the first `rows` < 8 lanes. Masked stores are slow on some processors.
void store_lanes(float* to, const Simd8& v, int64_t rows) {
  __m128 rest = _mm256_castps256_ps128(__m256(v));
  if (rows & 4) {
    _mm_storeu_ps(to, rest);
    rest = _mm256_extractf128_ps(__m256(v), 1);
    to += 4;
  }
  if (rows & 2) {
    _mm_storel_pi(reinterpret_cast<__m64*>(to), rest);
    rest = _mm_movehl_ps(rest, rest);
    to += 2;
  }
  if (rows & 1) _mm_store_ss(to, rest);
}

template <int64_t kCount>
void multiply_columns(const RestRows& of, const float* const* a, const float* const* b,
                      int64_t count, int64_t col, float* c) {
  const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(int(of.rows)),
                                          _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  float* const out = c + col * of.ldc + of.first;
  Simd8 sums[kCount];
  for (int64_t j = 0; j < kCount; ++j) {
    sums[j] = of.add ? load_masked(out + j * of.ldc, mask) : Simd8{};
  }
  for (int64_t i = 0; i < count; ++i) {
    const float* column = a[i] + of.first;
    const float* factors = b[i] + col * of.b_along_n;
    for (int64_t k = 0; k < of.depth; ++k, column += of.lda, factors += of.b_along_k) {
      const Simd8 lanes = load_masked(column, mask);
      for (int64_t j = 0; j < kCount; ++j) {
        sums[j] =
            PlainLanes::multiply_add(lanes, PlainLanes::all(factors[j * of.b_along_n]), sums[j]);
      }
    }
  }
  for (int64_t j = 0; j < kCount; ++j) store_lanes(out + j * of.ldc, sums[j], of.rows);
}

}  // namespace

int64_t RestRows::of(int64_t m) {
  const int64_t rows = m % kOctet;
  const bool one_piece = rows == 1 || rows == 4;
  return instruction_set() == "avx2" && !one_piece ? rows : 0;
}

void RestRows::multiply(const float* const* a, const float* const* b, float* c,
                        int64_t count) const {
  int64_t col = 0;
  for (; col + kColumns <= n; col += kColumns) {
    multiply_columns<kColumns>(*this, a, b, count, col, c);
  }
  if (col + kColumns / 2 <= n) {
    multiply_columns<kColumns / 2>(*this, a, b, count, col, c);
    col += kColumns / 2;
  }
  for (; col < n; ++col) multiply_columns<1>(*this, a, b, count, col, c);
}
#else
int64_t RestRows::of(int64_t) { return 0; }
void RestRows::multiply(const float* const*, const float* const*, float*, int64_t) const {}
#endif

}  // namespace cafetiere
