// SPDX-License-Identifier: Apache-2.0
// Recomputation: large results of steps by rows are discarded after the forward pass and computed
// again when backward needs them (Chen et al. 2016), but only if that costs no more than a pass
// over memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/program.h"

namespace cafetiere {

/// Before the first backward step that reads the result of a forward step by rows, inserts a copy
/// of that step, so that the result need not be kept until then. Applies only to results of steps
/// that are not costly, of `least_bytes` or more whose inputs are available at that point or can be
/// recomputed too; the values are bitwise the same. Backward begins with step `first_backward`.
void recompute_rows(Program& program, size_t first_backward, int64_t least_bytes = 1 << 20);

}  // namespace cafetiere
