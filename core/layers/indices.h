// SPDX-License-Identifier: Apache-2.0
// Conversion of floats in blobs, such as labels and row numbers, to indices.
#pragma once

#include <cstdint>

namespace cafetiere {

/// Truncates a float to an index below `count`; -1 if it is out of range or NaN.
inline int64_t index_below(float value, int64_t count) {
  return value > -1 && value < float(count) ? int64_t(value) : -1;
}

}  // namespace cafetiere
