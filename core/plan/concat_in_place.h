// SPDX-License-Identifier: Apache-2.0
// Concatenation in place: steps write their results where a concatenation would copy them. The
// values are bitwise the same.
#pragma once

#include <cstddef>

#include "core/device/program.h"

namespace cafetiere {

/// Lets steps in [begin, end) that offer it (Step::make_part) write parts of the result of a later
/// concatenation in that range, if nothing else reads what they write; the others are copied. Returns
/// the new end.
size_t concat_in_place(Program& program, size_t begin, size_t end);

}  // namespace cafetiere
