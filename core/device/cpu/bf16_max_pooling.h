// SPDX-License-Identifier: Apache-2.0
// Max pooling of bfloat16: which element of its window each output took is one number of 16 bits.
#pragma once

#include <cstdint>

#include "core/device/cpu/pool_pixels.h"

namespace cafetiere::bf16 {

/// Whether its rows fit in the kernels' buffer and its windows' elements in 16 bits.
bool fits_max_pooling(const PoolGeometry& g);

inline constexpr uint16_t kNowhere = 0xffff;

/// The passes over rows; all kinds give the same bits.
struct MaxPoolRows {
  /// Output rows [begin, end): of each window the greatest number and the place, counted row by row, of the
  /// first that equals it; -infinity and kNowhere where there is nothing but NaN and -infinity. Zeros
  /// become +0.
  void (*forward)(const PoolPixels& p, int64_t begin, int64_t end, const uint16_t* x, uint16_t* y,
                  uint16_t* place);
  /// Input rows [begin, end): the sums of dy of the outputs that took each number.
  void (*backward)(const PoolPixels& p, int64_t begin, int64_t end, const uint16_t* dy,
                   const uint16_t* place, uint16_t* dx);
};

/// Those of the instruction set in force.
MaxPoolRows max_pool_rows();
/// For comparisons; the second are for machines that have AVX-512.
MaxPoolRows plain_max_pool_rows();
MaxPoolRows wide_max_pool_rows();

}  // namespace cafetiere::bf16
