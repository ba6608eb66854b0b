// SPDX-License-Identifier: Apache-2.0
// Floats that name things: labels and row numbers as they come in blobs.
#pragma once

#include <cstdint>

namespace cafetiere {

/// A float as an index below `count`, its fraction dropped; -1 for whatever lies outside, NaN too.
inline int64_t index_below(float value, int64_t count) {
  return value > -1 && value < float(count) ? int64_t(value) : -1;
}

}  // namespace cafetiere
