// SPDX-License-Identifier: Apache-2.0
// Recomputing: large results of steps by rows are given up after the forward pass and computed again
// when backward wants them (Chen et al. 2016, here for what costs one pass over memory).
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/device/program.h"

namespace cafetiere {

/// Puts, before the first backward step that reads a result of a forward step by rows, a copy of that
/// step, so that nothing keeps the result until then. Only where what it is computed of is there
/// anyway, and where the result has `least_bytes`; the values are the same bits. Steps from
/// `first_backward` on are backward's.
void recompute_rows(Program& program, size_t first_backward, int64_t least_bytes = 1 << 20);

}  // namespace cafetiere
