// SPDX-License-Identifier: Apache-2.0
// ShardMean: the mean of one array per shard, the same bits on any number of ranks.
#pragma once

#include "core/comm/collectives.h"
#include "core/sync/exchange.h"
#include "core/sync/sync.h"

namespace cafetiere {

/// Turns the sum of `shards` arrays into their mean.
void divide_by_shards(std::span<float> sum, int shards);

/// Sums the arrays of all shards in the shard tree and divides by their number. Each rank computes
/// a slice of the mean and may change it before gather().
class ShardMean {
 public:
  explicit ShardMean(const SyncContext& context)
      : context_(context),
        sum_(shards_of_rank(rank_of(context.group), size_of(context.group), context.shards),
             context.shards, size_t(context.floats), context.pool),
        slices_(even_slices(size_t(context.floats), size_of(context.group))) {}

  size_t floats() const { return sum_.floats(); }
  /// This rank's slice.
  size_t begin() const { return slices_[size_t(rank_of(context_.group))]; }
  size_t end() const { return slices_[size_t(rank_of(context_.group)) + 1]; }

  /// Adds the array of the rank's next shard. The last one must stay valid until reduce().
  Status add(std::span<const float> array) { return sum_.add(array); }
  /// Replaces slice [begin(), end()) of `array`, the one added last, with that of the mean.
  Status reduce(std::span<float> array, const Exchange& exchange);
  /// Gathers all slices on all ranks.
  Status gather(std::span<float> array, const Exchange& exchange) {
    const AllGatherOp gathering{array, slices_};
    return exchange.gather(context_.group, {&gathering, 1}, true);
  }

 private:
  const SyncContext context_;
  TreeSum sum_;
  std::vector<size_t> slices_;
};

}  // namespace cafetiere
