// SPDX-License-Identifier: Apache-2.0
// Conversion of floats to bfloat16 and back, vectorised, bitwise the same on every processor.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/bfloat16.h"

namespace cafetiere {

/// Rounds like the processors' instruction: to nearest, ties to even; values below the least normal
/// number become 0.
inline uint16_t flushed_bfloat16(float value) {
  const bool zero = std::fabs(value) < std::numeric_limits<float>::min();
  return to_bfloat16(zero ? std::copysign(0.F, value) : value);
}

/// Whether this processor has that instruction.
bool rounds_by_instruction();

/// Applies flushed_bfloat16() to `count` floats.
void narrow(const float* from, int64_t count, uint16_t* to);
void widen(const uint16_t* from, int64_t count, float* to);

}  // namespace cafetiere
