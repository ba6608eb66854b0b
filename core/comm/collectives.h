// SPDX-License-Identifier: Apache-2.0
// Collectives, built on Group::exchange only. A null group is a single rank. Every rank must call
// the same functions in the same order.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/comm/group.h"

namespace cafetiere {

/// Rank and size of a group that may be null.
inline int rank_of(const Group* group) { return group ? group->rank() : 0; }
inline int size_of(const Group* group) { return group ? group->size() : 1; }

/// Returns when every rank has called it.
Status barrier(Group* group);

/// Broadcast: copies `bytes` of rank `root` to all ranks.
Status broadcast(Group* group, int root, std::span<std::byte> bytes);

/// All-gather: concatenates the ranks' bytes in rank order; all send the same number.
Status all_gather(Group* group, std::span<const std::byte> mine, std::span<std::byte> all);

/// All-gather of different sizes: returns the bytes of each rank.
Result<std::vector<std::vector<std::byte>>> all_gather_v(Group* group,
                                                         std::span<const std::byte> mine);

/// All-to-all: sends to[r] to rank r; returns what each rank sent to this one.
Result<std::vector<std::vector<std::byte>>> all_to_all_v(Group* group,
                                                         std::vector<std::vector<std::byte>> to);

}  // namespace cafetiere
