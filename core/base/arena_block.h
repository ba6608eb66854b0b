// SPDX-License-Identifier: Apache-2.0
// The grain of an arena of parameters.
#pragma once

#include <cstddef>

namespace cafetiere {

/// Floats that are summed as one piece. Slices of an arena start at multiples of it, so that a norm
/// is the same sum whichever rank holds which slice.
inline constexpr size_t kArenaBlock = 4096;

}  // namespace cafetiere
