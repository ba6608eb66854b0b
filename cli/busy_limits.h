// SPDX-License-Identifier: Apache-2.0
// What a machine does for a training whose neighbours keep its other cores busy.
#pragma once

#include "core/base/status.h"
#include "core/machine/limits.h"

namespace cafetiere {

/// The share of `threads` threads in the limits of all cores together, and what a small training
/// reaches of them (MachineLimits::training) while others like it use the other cores; there are
/// four such programs at most. Kept beside the limits of LimitsFlags; measuring takes less than four
/// seconds.
Result<MachineLimits> busy_limits(int threads);

}  // namespace cafetiere
