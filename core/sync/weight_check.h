// SPDX-License-Identifier: Apache-2.0
// Compares the ranks' weights, so that a fault of memory or code ends a run instead of spoiling it.
#pragma once

#include <cstdint>
#include <span>

#include "core/comm/group.h"

namespace cafetiere {

/// Exchanges a hash of the weights (8 bytes a rank). Every rank calls it; where they differ, all get
/// an error that names the ranks whose weights are not those of most others.
Status compare_weights(Group* group, std::span<const float> weights, int64_t iteration);

}  // namespace cafetiere
