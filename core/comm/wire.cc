#include "core/comm/wire.h"

#ifdef __F16C__
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>

namespace cafetiere {
namespace {

uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const uint32_t quiet_nan = (bits >> 16) | 0x40;  // rounding could carry a NaN into infinity
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet_nan : rounded);
}

void narrow_bfloat16(const float* from, size_t count, uint16_t* to) {
  for (size_t i = 0; i < count; ++i) to[i] = to_bfloat16(from[i]);
}

void widen_bfloat16(const uint16_t* from, size_t count, float* to) {
  for (size_t i = 0; i < count; ++i) to[i] = std::bit_cast<float>(uint32_t{from[i]} << 16);
}

void narrow_float16(const float* from, size_t count, uint16_t* to) {
  size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
#endif
  for (; i < count; ++i) to[i] = std::bit_cast<uint16_t>(static_cast<_Float16>(from[i]));
}

void widen_float16(const uint16_t* from, size_t count, float* to) {
  size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
#endif
  for (; i < count; ++i) to[i] = static_cast<float>(std::bit_cast<_Float16>(from[i]));
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
