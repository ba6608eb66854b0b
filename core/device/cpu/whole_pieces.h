// SPDX-License-Identifier: Apache-2.0
// Dividing sizes into pieces, and rounding them up to whole pieces.
#pragma once

#include <cstdint>

namespace cafetiere {

/// The least multiple of `step` that is at least `size`.
inline int64_t rounded_up(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

/// The size of equal pieces of `all`, as many as with size `most`.
inline int64_t alike_pieces(int64_t all, int64_t most) {
  const int64_t pieces = (all + most - 1) / most;
  return (all + pieces - 1) / pieces;
}

}  // namespace cafetiere
