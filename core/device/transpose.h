// SPDX-License-Identifier: Apache-2.0
// Matrix transposition in registers.
#pragma once

#include <cstdint>

namespace cafetiere {

/// Transposes 8 x 8 floats in place; each row is one register or a pair of them.
inline void transpose_8x8(float __attribute__((vector_size(32))) (&r)[8]) {
  float __attribute__((vector_size(32))) t[8];
  // Interleaves pairs of rows, then pairs of those, within each half of a register; then the
  // halves.
  for (int i = 0; i < 8; i += 2) {
    t[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
    t[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = __builtin_shufflevector(t[i], t[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
    r[i + 1] = __builtin_shufflevector(t[i], t[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    r[i + 2] = __builtin_shufflevector(t[i + 1], t[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
    r[i + 3] = __builtin_shufflevector(t[i + 1], t[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
  }
  for (int i = 0; i < 4; ++i) {
    t[i] = __builtin_shufflevector(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
    t[i + 4] = __builtin_shufflevector(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
  }
  for (int i = 0; i < 8; ++i) r[i] = t[i];
}

/// The same from rows in memory to others.
inline void transpose_8x8(const float* in, int64_t ld_in, float* out, int64_t ld_out) {
  using InMemory = float __attribute__((vector_size(32), aligned(4), may_alias));
  float __attribute__((vector_size(32))) r[8];
  for (int i = 0; i < 8; ++i) r[i] = *reinterpret_cast<const InMemory*>(in + i * ld_in);
  transpose_8x8(r);
  for (int i = 0; i < 8; ++i) *reinterpret_cast<InMemory*>(out + i * ld_out) = r[i];
}

/// Transposes kRows rows to columns without gaps: a loop that compilers turn into shuffles.
template <int64_t kRows>
inline void interleave(const float* in, int64_t cols, int64_t ld_in, float* __restrict out) {
  for (int64_t c = 0; c < cols; ++c) {
    for (int64_t r = 0; r < kRows; ++r) out[c * kRows + r] = in[r * ld_in + c];
  }
}

/// Transposes a rows x cols matrix: whole 8 x 8 tiles in registers, the rest element by element.
inline void transpose_tiles(const float* in, int64_t rows, int64_t cols, int64_t ld_in, float* out,
                            int64_t ld_out) {
  if (rows == 3 && ld_out == 3) return interleave<3>(in, cols, ld_in, out);
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
