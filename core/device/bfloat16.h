// SPDX-License-Identifier: Apache-2.0
// Floats rounded to bfloat16 and widened again, many at a time, with the same bits on every processor.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "core/base/bfloat16.h"

namespace cafetiere {

/// As the processors' instruction rounds: to the nearest, to even if two are equally near, and to 0 what
/// is smaller than a normal number.
inline uint16_t flushed_bfloat16(float value) {
  const bool zero = std::fabs(value) < std::numeric_limits<float>::min();
  return to_bfloat16(zero ? std::copysign(0.F, value) : value);
}

/// Whether this processor has that instruction.
bool rounds_by_instruction();

/// flushed_bfloat16() of `count` floats.
void narrow(const float* from, int64_t count, uint16_t* to);
void widen(const uint16_t* from, int64_t count, float* to);

}  // namespace cafetiere
