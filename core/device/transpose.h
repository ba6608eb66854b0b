// SPDX-License-Identifier: Apache-2.0
// A matrix transpose in registers.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace cafetiere {

/// Transposes 8 x 8 floats.
inline void transpose_8x8(const float* in, int64_t ld_in, float* out, int64_t ld_out) {
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(in + i * ld_in);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(out + i * ld_out, _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(out + (i + 4) * ld_out, _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
}

/// Transposes a rows x cols matrix, whole 8 x 8 tiles in registers and the rest one by one.
inline void transpose_tiles(const float* in, int64_t rows, int64_t cols, int64_t ld_in, float* out,
                            int64_t ld_out) {
  const int64_t whole_rows = rows / 8 * 8, whole_cols = cols / 8 * 8;
  for (int64_t r = 0; r < whole_rows; r += 8) {
    for (int64_t c = 0; c < whole_cols; c += 8) {
      transpose_8x8(in + r * ld_in + c, ld_in, out + c * ld_out + r, ld_out);
    }
    for (int64_t c = whole_cols; c < cols; ++c) {
      for (int64_t i = r; i < r + 8; ++i) out[c * ld_out + i] = in[i * ld_in + c];
    }
  }
  for (int64_t r = whole_rows; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) out[c * ld_out + r] = in[r * ld_in + c];
  }
}

}  // namespace cafetiere
