// SPDX-License-Identifier: Apache-2.0
// Sizes that are cut into pieces, or filled up to whole ones.
#pragma once

#include <cstdint>

namespace cafetiere {

/// The least multiple of `step` that is not less than `size`.
inline int64_t rounded_up(int64_t size, int64_t step) { return (size + step - 1) / step * step; }

/// The size of pieces of `all` that are as many as those of size `most`, and as large as each other.
inline int64_t alike_pieces(int64_t all, int64_t most) {
  const int64_t pieces = (all + most - 1) / most;
  return (all + pieces - 1) / pieces;
}

}  // namespace cafetiere
