// SPDX-License-Identifier: Apache-2.0
// bfloat16: the upper half of a float32, with its range and 8 bits of precision.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace cafetiere {

/// The bits of the nearest bfloat16, of two equally near the even one. A NaN stays a NaN.
inline uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const uint32_t quiet_nan = (bits >> 16) | 0x40;  // rounding could carry a NaN into infinity
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

/// The float of the same value.
inline float from_bfloat16(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

inline void narrow_bfloat16(const float* from, size_t count, uint16_t* to) {
  for (size_t i = 0; i < count; ++i) to[i] = to_bfloat16(from[i]);
}

inline void widen_bfloat16(const uint16_t* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = from_bfloat16(from[i]);
}

}  // namespace cafetiere
