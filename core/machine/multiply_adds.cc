// SPDX-License-Identifier: Apache-2.0
#include "core/machine/multiply_adds.h"

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace cafetiere {
namespace {

constexpr int kSums =
    10;  // more than latency times throughput; they and two factors fit 16 registers
constexpr int kRounds = 1 << 14;  // some 50 microseconds

/// Keeps the compiler from dropping a value or from knowing it.
template <class Vector>
void hide(Vector& value) {
#if defined(__x86_64__)
  asm volatile("" : "+v"(value));
#else
  asm volatile("" : "+w"(value));
#endif
}

#if defined(__x86_64__)

__attribute__((target("avx512f"))) double avx512() {
  __m512 sums[kSums], x = _mm512_set1_ps(0.999f), y = _mm512_set1_ps(0.001f);
  for (__m512& sum : sums) sum = y;
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < kSums; ++j) sums[j] = _mm512_fmadd_ps(sums[j], x, y);
  }
  for (__m512& sum : sums) asm volatile("" : "+v"(sum));
  return 2.0 * 16 * kSums * kRounds;
}

double avx2() {
  __m256 sums[kSums], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (__m256& sum : sums) sum = y;
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < kSums; ++j) sums[j] = _mm256_fmadd_ps(sums[j], x, y);
  }
  for (__m256& sum : sums) hide(sum);
  return 2.0 * 8 * kSums * kRounds;
}

/// Without FMA: what `avx` and `generic` have.
double separate() {
  __m256 sums[kSums], x = _mm256_set1_ps(0.999f), y = _mm256_set1_ps(0.001f);
  for (__m256& sum : sums) sum = y;
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < kSums; ++j) sums[j] = _mm256_add_ps(_mm256_mul_ps(sums[j], x), y);
  }
  for (__m256& sum : sums) hide(sum);
  return 2.0 * 8 * kSums * kRounds;
}

#elif defined(__aarch64__)

double neon() {
  float32x4_t sums[kSums], x = vdupq_n_f32(0.999f), y = vdupq_n_f32(0.001f);
  for (float32x4_t& sum : sums) sum = y;
  for (int i = 0; i < kRounds; ++i) {
#pragma GCC unroll 10
    for (int j = 0; j < kSums; ++j) sums[j] = vfmaq_f32(y, sums[j], x);
  }
  for (float32x4_t& sum : sums) hide(sum);
  return 2.0 * 4 * kSums * kRounds;
}

#endif

}  // namespace

double multiply_adds([[maybe_unused]] std::string_view set) {
#if defined(__x86_64__)
  if (set == "amx" || set.starts_with("avx512")) return avx512();
  return set == "avx2" ? avx2() : separate();
#elif defined(__aarch64__)
  return neon();
#else
#error "no multiply-adds for this processor"
#endif
}

}  // namespace cafetiere
