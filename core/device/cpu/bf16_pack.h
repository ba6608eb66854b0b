// SPDX-License-Identifier: Apache-2.0
// Operands of Bf16Product: pairs of rows, and transposition, in bfloat16.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/base/bfloat16.h"
#include "core/device/transpose.h"

namespace cafetiere::bf16 {

/// Interleaves sixteen pairs.
inline void interleave(const uint16_t* even, const uint16_t* odd, uint16_t* pairs) {
  using Sixteen = uint16_t __attribute__((vector_size(32)));
  Sixteen e, o;
  std::memcpy(&e, even, sizeof e);
  std::memcpy(&o, odd, sizeof o);
  const Sixteen low =
      __builtin_shufflevector(e, o, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const Sixteen high =
      __builtin_shufflevector(e, o, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  std::memcpy(pairs, &low, sizeof low);
  std::memcpy(pairs + 16, &high, sizeof high);
}

/// pairs[l] = (even[l], odd[l]) for l < lanes, and zeros up to `height`, which is less than 16 lanes
/// more; a null row counts as zeros.
inline void pair_rows(const uint16_t* even, const uint16_t* odd, int64_t lanes, int64_t height,
                      uint16_t* pairs) {
  auto* const to = reinterpret_cast<uint32_t __attribute__((may_alias))*>(pairs);
  if (even && odd && lanes >= 16) {
    if (height > lanes) std::memset(pairs + 2 * (height - 16), 0, 64);
    for (int64_t l = 0; l + 16 <= lanes; l += 16) interleave(even + l, odd + l, pairs + 2 * l);
    const int64_t last = lanes - 16;
    if (last % 16 != 0) interleave(even + last, odd + last, pairs + 2 * last);
    return;
  }
  if (even && odd) {
    for (int64_t l = 0; l < lanes; ++l) to[l] = uint32_t{even[l]} | uint32_t{odd[l]} << 16;
  } else {
    const uint16_t* const only = even ? even : odd;
    const int shift = even ? 0 : 16;
    for (int64_t l = 0; l < lanes; ++l) to[l] = only ? uint32_t{only[l]} << shift : 0;
  }
  std::fill(to + lanes, to + height, 0U);
}

/// The same for floats, with rounding.
inline void pair_rows(const float* even, const float* odd, int64_t lanes, int64_t height,
                      uint16_t* pairs) {
  auto* const to = reinterpret_cast<uint32_t __attribute__((may_alias))*>(pairs);
  for (int64_t l = 0; l < lanes; ++l) {
    to[l] = uint32_t{to_bfloat16(even[l])} | (odd ? uint32_t{to_bfloat16(odd[l])} << 16 : 0);
  }
  std::fill(to + lanes, to + height, 0U);
}

/// Transposes rows of `pairs` pairs, `distance` numbers apart, to [pair][row][2] with `lanes` rows
/// from one pair to the next.
inline void transpose_pairs(const uint16_t* from, int64_t rows, int64_t pairs, int64_t distance,
                            uint16_t* to, int64_t lanes) {
  // Moves a pair as if it were a float.
  transpose_tiles(reinterpret_cast<const float*>(from), rows, pairs, distance / 2,
                  reinterpret_cast<float*>(to), lanes);
}

using Eight = uint16_t __attribute__((vector_size(16)));

/// Transposes 8 x 8: row i of the result holds element i of each row.
inline void transpose(Eight (&r)[8]) {
  Eight t[8];
  for (int i = 0; i < 4; ++i) {  // interleave rows i and i + 4
    t[2 * i] = __builtin_shufflevector(r[i], r[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
    t[2 * i + 1] = __builtin_shufflevector(r[i], r[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  for (int i = 0; i < 4; ++i) {
    r[2 * i] = __builtin_shufflevector(t[i], t[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
    r[2 * i + 1] = __builtin_shufflevector(t[i], t[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  for (int i = 0; i < 4; ++i) {
    t[2 * i] = __builtin_shufflevector(r[i], r[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
    t[2 * i + 1] = __builtin_shufflevector(r[i], r[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
  }
  std::copy_n(t, 8, r);
}

}  // namespace cafetiere::bf16
