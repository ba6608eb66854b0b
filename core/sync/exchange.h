// Exchange: how sums travel, as the settings say.
#pragma once

#include "core/comm/ring.h"
#include "core/comm/shard_tree.h"

namespace cafetiere {

/// The numbers on the wire, and who talks to whom. Only the tree with float32 promises the same bits
/// on any number of ranks; the others do for the same number.
struct Exchange {
  Wire wire = Wire::kFloat32;
  bool ring = false;

  /// The rank's slice of the sum over all shards, see reduce_scatter().
  Status reduce(Group* group, TreeSum& sum, std::span<const size_t> slices,
                std::span<float> out) const {
    return ring ? ring_reduce_scatter(group, sum, slices, out, wire)
                : reduce_scatter(group, sum, slices, out, wire);
  }
  /// All ranks' slices on all ranks, see all_gather_slices(); `rounded`: in the wire's numbers.
  Status gather(Group* group, std::span<float> arena, std::span<const size_t> slices,
                bool rounded) const {
    const Wire numbers = rounded ? wire : Wire::kFloat32;
    return ring ? ring_all_gather(group, arena, slices, numbers)
                : all_gather_slices(group, arena, slices, numbers);
  }
  /// Whether weights must not travel as they are, since small steps would be rounded away.
  bool rounds() const { return wire != Wire::kFloat32; }
};

}  // namespace cafetiere
