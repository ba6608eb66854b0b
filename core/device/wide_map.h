// SPDX-License-Identifier: Apache-2.0
// Element-wise functions with AVX-512. Of bfloat16, 32 numbers at a time are widened, computed and
// rounded without a buffer in memory. The results are bitwise those of one number at a time.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/base/targets.h"
#include "core/device/bfloat16.h"
#include "core/device/isa.h"

#if CFT_OTHER_TARGETS
#include <immintrin.h>
#endif

namespace cafetiere {

/// Whether wide_map() may be called, given the processor and the instruction set in use.
inline bool has_wide_map() {
  return has_wide_vectors(instruction_set()) && rounds_by_instruction();
}

#if CFT_OTHER_TARGETS
// After all includes: inline functions defined there must run on any machine.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512bf16,prefer-vector-width=512")

inline constexpr int64_t kWideNumbers = 32;

inline void widen(const uint16_t* from, float (&to)[kWideNumbers]) {
  using Narrow = uint16_t __attribute__((vector_size(32)));
  using Wide = uint32_t __attribute__((vector_size(64)));
  for (int64_t i = 0; i < kWideNumbers; i += 16) {
    Narrow bits;
    std::memcpy(&bits, from + i, sizeof bits);
    const Wide wide = __builtin_convertvector(bits, Wide) << 16;
    std::memcpy(to + i, &wide, sizeof wide);
  }
}

/// out[i] = f(values, i) for `count` elements, where `values` are those of the inputs.
template <size_t D, class F>
void wide_map(const std::array<const uint16_t*, D>& in, uint16_t* out, int64_t count, const F& f) {
  const F local = f;
  const auto from = in;
  int64_t i = 0;
  for (; i + kWideNumbers <= count; i += kWideNumbers) {
    alignas(64) float values[D][kWideNumbers], results[kWideNumbers];
    for (size_t j = 0; j < D; ++j) widen(from[j] + i, values[j]);
    for (int64_t l = 0; l < kWideNumbers; ++l) {
      std::array<float, D> d;
      for (size_t j = 0; j < D; ++j) d[j] = values[j][l];
      results[l] = local(d, i + l);
    }
    const __m512bh both =
        _mm512_cvtne2ps_pbh(_mm512_load_ps(results + 16), _mm512_load_ps(results));
    std::memcpy(out + i, &both, sizeof both);
  }
  for (; i < count; ++i) {
    asm volatile("");  // prevents vectorising the remainder, which would be most of the code
    std::array<float, D> d;
    for (size_t j = 0; j < D; ++j) d[j] = from_bfloat16(from[j][i]);
    out[i] = flushed_bfloat16(local(d, i));
  }
}

/// The same for floats.
template <size_t D, class F>
void wide_map(const std::array<const float*, D>& in, float* out, int64_t count, const F& f) {
  const F local = f;
  const auto from = in;
  float* const to = out;
  [&]<size_t... I>(std::index_sequence<I...>) {
#pragma GCC ivdep
    for (int64_t i = 0; i < count; ++i) to[i] = local(from[I][i]...);
  }
  (std::make_index_sequence<D>());
}

#pragma GCC pop_options
#else
template <size_t D, class F>
void wide_map(const std::array<const float*, D>&, float*, int64_t, const F&) {}
template <size_t D, class F>
void wide_map(const std::array<const uint16_t*, D>&, uint16_t*, int64_t, const F&) {}
#endif

}  // namespace cafetiere
