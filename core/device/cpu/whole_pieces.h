// SPDX-License-Identifier: Apache-2.0
// Dividing sizes into pieces, and rounding them up to whole pieces.
#pragma once

#include <cstdint>

namespace cafetiere {

/// The number of parts of at most `most`.
inline int64_t parts_of(int64_t size, int64_t most) { return (size + most - 1) / most; }

/// The least multiple of `step` that is at least `size`.
inline int64_t rounded_up(int64_t size, int64_t step) { return parts_of(size, step) * step; }

/// The size of equal pieces of `all`, as many as with size `most`.
inline int64_t alike_pieces(int64_t all, int64_t most) {
  return parts_of(all, parts_of(all, most));
}

}  // namespace cafetiere
