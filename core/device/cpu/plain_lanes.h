// SPDX-License-Identifier: Apache-2.0
// PlainLanes: portable vectors for passes that are compiled for several widths.
#pragma once

#if defined(__FMA__)
#include <immintrin.h>
#else
#include <cmath>
#endif

#include "core/device/cpu/lane_chunks.h"

namespace cafetiere {

struct PlainLanes {
  using V = Simd8;
  static constexpr int64_t kCount = kOctet;
  template <class T>
  static V load(const T* from, int64_t lanes) {
    return load_octet(from, lanes);
  }
  template <class T>
  static void store(T* to, const V& v, int64_t lanes) {
    store_octet(to, v, lanes);
  }
  static V all(float x) { return V{x, x, x, x, x, x, x, x}; }
  /// a[i] * b[i] + sums[i], rounded once.
  static V multiply_add(const V& a, const V& b, const V& sums) {
#if defined(__FMA__)  // compilers would spill the sums of a loop to memory
    return V(_mm256_fmadd_ps(__m256(a), __m256(b), __m256(sums)));
#else
    V result;
    for (int64_t i = 0; i < kCount; ++i) result[i] = std::fma(a[i], b[i], sums[i]);
    return result;
#endif
  }
};

}  // namespace cafetiere
