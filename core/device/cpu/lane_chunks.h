// SPDX-License-Identifier: Apache-2.0
// Lane chunks: vectors divided into pieces whose sums stay in registers during an inner loop.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "core/base/bfloat16.h"
#include "core/tensor/version.h"

namespace cafetiere {

inline constexpr int64_t kLaneChunk = 32;  ///< four registers of 8 floats

/// Calls f(first, count) for pieces of [0, size). The count of a whole piece is a compile-time
/// constant, so that loops over it are unrolled.
template <int64_t kPiece = kLaneChunk, class F>
void for_each_chunk(int64_t size, const F& f) {
  int64_t i = 0;
  for (; i + kPiece <= size; i += kPiece) f(i, std::integral_constant<int64_t, kPiece>());
  if (i < size) f(i, size - i);
}

inline constexpr int64_t kCacheLine = 16;  ///< floats

/// Prefetches a cache line that is about to be written.
template <class T>
inline void prefetch_to_write(T* at) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*at));  // the builtin would only prefetch it for reading
#else
  __builtin_prefetch(at, 1);
#endif
}

/// A register of 8 floats; comparisons give a mask for ?:.
using Simd8 = float __attribute__((vector_size(32)));
inline constexpr int64_t kOctet = 8;

/// Loads `count` <= 8 floats; the rest are 0.
inline Simd8 load_octet(const float* from, int64_t count) {
  Simd8 v{};
  std::memcpy(&v, from, size_t(count) * sizeof(float));
  return v;
}
inline void store_octet(float* to, const Simd8& v, int64_t count) {
  std::memcpy(to, &v, size_t(count) * sizeof(float));
}

/// The same for bfloat16, with rounding.
inline Simd8 load_octet(const uint16_t* from, int64_t count) {
  using Wide = uint32_t __attribute__((vector_size(32)));
  using Narrow = uint16_t __attribute__((vector_size(16)));
  Narrow v{};
  std::memcpy(&v, from, size_t(count) * sizeof(uint16_t));
  return std::bit_cast<Simd8>(__builtin_convertvector(v, Wide) << 16);
}
inline void store_octet(uint16_t* to, const Simd8& v, int64_t count) {
  // to_bfloat16() of all lanes at once; the compared values are positive.
  using Wide = uint32_t __attribute__((vector_size(32)));
  using Signed = int32_t __attribute__((vector_size(32)));
  using Narrow = uint16_t __attribute__((vector_size(16)));
  const Wide bits = std::bit_cast<Wide>(v), high = bits >> 16;
  const Wide rounded = (bits + 0x7fff + (high & 1)) >> 16;
  const Wide all = Signed(bits & 0x7fffffff) > 0x7f800000 ? high | 0x40 : rounded;
  const Narrow narrow = __builtin_convertvector(all, Narrow);
  std::memcpy(to, &narrow, size_t(count) * sizeof(uint16_t));
}

/// Calls f with a value of the element type of this format.
template <class F>
auto with_elements(Format format, const F& f) {
  return format == Format::kFloat32 ? f(float()) : f(uint16_t());
}

}  // namespace cafetiere
