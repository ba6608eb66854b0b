// SPDX-License-Identifier: Apache-2.0
// Exchange: the wire format and the algorithm of reductions, as set.
#pragma once

#include "core/comm/ring.h"
#include "core/comm/shard_tree.h"

namespace cafetiere {

/// The number format on the wire, and tree or ring. Only the float32 tree promises the same bits on
/// any number of ranks; the others do for the same number.
struct Exchange {
  Wire wire = Wire::kFloat32;
  bool ring = false;

  /// The rank's slices of sums over all shards, see reduce_scatter().
  Status reduce(Group* group, std::span<const Reduction> reductions,
                ReadySource* source = nullptr) const {
    if (!ring) return reduce_scatter(group, reductions, wire, source);
    for (size_t i = 0; i < reductions.size(); ++i) {
      const Reduction& r = reductions[i];
      if (source) CFT_TRY(wait_until_ready([&] { return source->ready(i); }, source->wake_fd()));
      CFT_TRY(ring_reduce_scatter(group, r.sum, r.slices, r.out, wire));
    }
    return {};
  }
  /// All ranks' slices on all ranks, see all_gather_slices(); `rounded`: in the wire's format.
  Status gather(Group* group, std::span<const AllGatherOp> gathers, bool rounded) const {
    const Wire numbers = rounded ? wire : Wire::kFloat32;
    if (!ring) return all_gather_slices(group, gathers, numbers);
    for (const AllGatherOp& g : gathers) {
      CFT_TRY(ring_all_gather(group, g.arena, g.slices, numbers));
    }
    return {};
  }
  /// The same without rounding.
  Exchange in_float32() const { return {.ring = ring}; }
  /// Whether the wire rounds: then deltas must be sent, as weights would lose small steps.
  bool rounds() const { return wire != Wire::kFloat32; }
};

}  // namespace cafetiere
