// SPDX-License-Identifier: Apache-2.0
#include "core/comm/wire.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>

#include "core/base/bfloat16.h"

namespace cafetiere {
namespace {

constexpr uint32_t kHalfBias = (127 - 15) << 23;  // float's exponent bias less that of binary16

// Converts a float to binary16 and back, bitwise like F16C: for the ends of rows, and for
// processors and compilers without F16C or _Float16.
uint16_t to_float16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  uint32_t half;
  if (magnitude > 0x7f800000) {
    half = 0x7e00 | ((magnitude >> 13) & 0x3ff);  // NaN, quiet
  } else if (magnitude >= 0x477ff000) {
    half = 0x7c00;  // 65520 and above round to infinity
  } else if (magnitude >= 0x38800000) {
    half = (magnitude - kHalfBias + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  } else {
    // Below 2^-14, the format's spacing is 2^-24, that of floats from 0.5 to 1.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
           std::bit_cast<uint32_t>(0.5F);
  }
  return static_cast<uint16_t>(half | ((bits >> 16) & 0x8000));
}

float from_float16(uint16_t half) {
  const uint32_t magnitude = half & 0x7fff;
  uint32_t bits;
  if (magnitude > 0x7c00) {
    bits = 0x7fc00000 | (magnitude << 13);
  } else if (magnitude == 0x7c00) {
    bits = 0x7f800000;
  } else if (magnitude >= 0x400) {
    bits = (magnitude << 13) + kHalfBias;
  } else {
    bits = std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24F);
  }
  return std::bit_cast<float>(bits | (uint32_t{half} & 0x8000) << 16);
}

void narrow_float16(const float* from, size_t count, uint16_t* to) {
  size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < count; ++i) to[i] = to_float16(from[i]);
}

void widen_float16(const uint16_t* from, size_t count, float* to) {
  size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
#endif
  for (; i < count; ++i) to[i] = from_float16(from[i]);
}

}  // namespace

void narrow(Wire wire, const float* from, size_t count, uint16_t* to) {
  (wire == Wire::kFloat16 ? narrow_float16 : narrow_bfloat16)(from, count, to);
}

void widen(Wire wire, const uint16_t* from, size_t count, float* to) {
  (wire == Wire::kFloat16 ? widen_float16 : widen_bfloat16)(from, count, to);
}

void round_to_wire(Wire wire, float* values, size_t count) {
  if (wire == Wire::kFloat32) return;
  constexpr size_t kTile = 1024;
  uint16_t tile[kTile];
  for (size_t at = 0; at < count; at += kTile) {
    const size_t n = std::min(kTile, count - at);
    narrow(wire, values + at, n, tile);
    widen(wire, tile, n, values + at);
  }
}

}  // namespace cafetiere
