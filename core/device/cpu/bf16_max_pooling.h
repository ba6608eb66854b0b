// SPDX-License-Identifier: Apache-2.0
// Max pooling of bfloat16: the element of its window that an output took is stored in 16 bits.
#pragma once

#include <cstdint>

#include "core/device/cpu/pool_pixels.h"

namespace cafetiere::bf16 {

/// Whether rows fit into the kernels' buffer and window elements into 16 bits.
bool fits_max_pooling(const PoolGeometry& g);

inline constexpr uint16_t kNowhere = 0xffff;

/// The passes over rows; all implementations give bitwise the same results.
struct MaxPoolRows {
  /// Output rows [begin, end): for each window, its maximum and the position, in row-major order,
  /// of the first element equal to it, unless `place` is null; -infinity and kNowhere if there are
  /// only NaN and -infinity. Zeros become +0.
  void (*forward)(const PoolPixels& p, int64_t begin, int64_t end, const uint16_t* x, uint16_t* y,
                  uint16_t* place);
  /// Input rows [begin, end): for each number, the sum of dy over the outputs that took it.
  void (*backward)(const PoolPixels& p, int64_t begin, int64_t end, const uint16_t* dy,
                   const uint16_t* place, uint16_t* dx);
};

/// The implementation for the instruction set in use.
MaxPoolRows max_pool_rows();
/// For comparison; the second one requires AVX-512.
MaxPoolRows plain_max_pool_rows();
MaxPoolRows wide_max_pool_rows();

}  // namespace cafetiere::bf16
