// SPDX-License-Identifier: Apache-2.0
// Compares the ranks' weights, so that a memory error or a bug ends a run, not corrupts it.
#pragma once

#include <cstdint>
#include <span>

#include "core/comm/group.h"

namespace cafetiere {

/// Exchanges a hash of the weights (8 bytes per rank). Every rank calls it; if they differ, all
/// return an error that names the ranks that differ from a majority, if there is one.
Status compare_weights(Group* group, std::span<const float> weights, int64_t iteration);

}  // namespace cafetiere
