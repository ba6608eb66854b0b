// SPDX-License-Identifier: Apache-2.0
// The ring: each rank talks to two neighbours only, whatever the number of ranks.
#pragma once

#include "core/comm/shard_tree.h"

namespace cafetiere {

/// reduce_scatter() around a ring, in ranks - 1 steps (Patarasuk and Yuan 2009). A rank's nodes are
/// added up first and the ranks' sums in the order of the ring: the bits are the same for the same
/// number of ranks only.
Status ring_reduce_scatter(Group* group, TreeSum& sum, std::span<const size_t> slices,
                           std::span<float> out, Wire wire = Wire::kFloat32);

/// all_gather_slices() around a ring: the same result.
Status ring_all_gather(Group* group, std::span<float> arena, std::span<const size_t> slices,
                       Wire wire = Wire::kFloat32);

}  // namespace cafetiere
