// SPDX-License-Identifier: Apache-2.0
// Pooling where each pixel's numbers follow each other.
#pragma once

#include <cstdint>

#include "core/device/geometry.h"

namespace cafetiere {

/// One image, or all of them where they share a pixel's vector of `pixel` numbers.
struct PoolPixels {
  PoolGeometry g;
  int64_t pixel;
};

/// The passes over rows, of float or bfloat16; all kinds give the same bits.
template <class T>
struct PoolRows {
  /// Output rows [begin, end): of each window the greatest number and where its first is in the image,
  /// counted row by row; -FLT_MAX and -1 where none is above that.
  void (*max)(const PoolPixels& p, int64_t begin, int64_t end, const T* x, T* y, float* index);
  /// Output rows [begin, end): the sum of each window over its size, which counts padding.
  void (*average)(const PoolPixels& p, int64_t begin, int64_t end, const T* x, T* y);
  /// Input rows [begin, end): the sums of dy of the outputs that took each number.
  void (*max_backward)(const PoolPixels& p, int64_t begin, int64_t end, const T* dy,
                       const float* index, T* dx);
  /// Input rows [begin, end): the sums of dy over the sizes of the windows that cover each number.
  void (*average_backward)(const PoolPixels& p, int64_t begin, int64_t end, const T* dy, T* dx);
};

/// Those of the instruction set in force.
template <class T>
PoolRows<T> pool_rows();
/// For comparisons; the second are for machines that have AVX-512.
template <class T>
PoolRows<T> plain_pool_rows();
template <class T>
PoolRows<T> wide_pool_rows();

}  // namespace cafetiere
