// SPDX-License-Identifier: Apache-2.0
// Ring algorithms: each rank communicates with two neighbours only, whatever the number of ranks.
#pragma once

#include "core/comm/shard_tree.h"

namespace cafetiere {

/// reduce_scatter() around a ring, in ranks - 1 steps (Patarasuk and Yuan 2009). Each rank's nodes
/// are summed first, then the ranks' sums in ring order: the result is bitwise the same only for
/// the same number of ranks.
Status ring_reduce_scatter(Group* group, TreeSum& sum, std::span<const size_t> slices,
                           std::span<float> out, Wire wire = Wire::kFloat32);

/// all_gather_slices() around a ring, with the same result.
Status ring_all_gather(Group* group, std::span<float> arena, std::span<const size_t> slices,
                       Wire wire = Wire::kFloat32);

}  // namespace cafetiere
