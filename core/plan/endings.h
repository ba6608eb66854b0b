// SPDX-License-Identifier: Apache-2.0
// Endings: a sum, and a ReLU after it, are computed by the step that computes one of the terms, while
// its results are in registers. The values are bitwise the same, but for the sign of a ReLU's zeros.
#pragma once

#include <cstddef>

#include "core/device/program.h"

namespace cafetiere {

/// Merges such maps in [begin, end) into the steps before that offer it (Step::make_ending), if
/// nothing else reads what lies between. Returns the new end.
size_t merge_endings(Program& program, size_t begin, size_t end);

}  // namespace cafetiere
