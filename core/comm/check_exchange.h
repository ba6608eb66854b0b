// SPDX-License-Identifier: Apache-2.0
// The checks that every transport makes before it transfers anything.
#pragma once

#include <span>

#include "core/comm/group.h"

namespace cafetiere {

/// Larger than any arena or block of rows; a larger size is a bug in the caller.
inline constexpr size_t kMaxMessageBytes = size_t{1} << 40;

/// An error unless every message is between `rank` and another rank below `size`.
Status check_exchange(int rank, int size, std::span<const Send> sends,
                      std::span<const Receive> receives);

}  // namespace cafetiere
