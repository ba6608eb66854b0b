// SPDX-License-Identifier: Apache-2.0
// Pooling where the numbers of each pixel are contiguous.
#pragma once

#include <cstdint>

#include "core/device/geometry.h"

namespace cafetiere {

/// One image, or all of them if they share a pixel's vector of `pixel` numbers.
struct PoolPixels {
  PoolGeometry g;
  int64_t pixel;
};

/// The passes over rows, for float or bfloat16; all implementations give bitwise the same results.
template <class T>
struct PoolRows {
  /// Output rows [begin, end): for each window, its maximum and the row-major position in the image
  /// of its first occurrence, unless `index` is null; -FLT_MAX and -1 if no element is above that.
  void (*max)(const PoolPixels& p, int64_t begin, int64_t end, const T* x, T* y, float* index);
  /// Output rows [begin, end): the sum of each window divided by its size, which includes padding.
  void (*average)(const PoolPixels& p, int64_t begin, int64_t end, const T* x, T* y);
  /// Input rows [begin, end): for each number, the sum of dy over the outputs that took it.
  void (*max_backward)(const PoolPixels& p, int64_t begin, int64_t end, const T* dy,
                       const float* index, T* dx);
  /// Input rows [begin, end): for each number, the sum of dy divided by window size over the
  /// windows that cover it.
  void (*average_backward)(const PoolPixels& p, int64_t begin, int64_t end, const T* dy, T* dx);
};

/// The implementation for the instruction set in use.
template <class T>
PoolRows<T> pool_rows();
/// For comparison; the second one requires AVX-512.
template <class T>
PoolRows<T> plain_pool_rows();
template <class T>
PoolRows<T> wide_pool_rows();

}  // namespace cafetiere
