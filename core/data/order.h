// SPDX-License-Identifier: Apache-2.0
// The order in which records are read: sequential, or shuffled in each epoch. Stateless, so that a
// resumed run continues it.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/log.h"
#include "core/base/status.h"

namespace cafetiere {

/// The position of row `row` of a shard's batch in a source's endless sequence of records, which
/// are assigned to shards round-robin, as in Caffe's multi-GPU solver.
inline int64_t sequence_position(int64_t sub_step, int64_t row, int64_t batch, int shard,
                                 int64_t shards) {
  return (sub_step * batch + row) * shards + shard;
}

/// Permutes the values randomly in place (Fisher-Yates); the result depends only on the values,
/// `key`, `stream` and `epoch`.
void shuffle(std::span<uint32_t> values, uint64_t key, uint32_t stream, int64_t epoch);

/// How many of a list's `images` rand_skip leaves out at the beginning of the first epoch: a random
/// number below it, or 0. An error if that is all of them.
Result<int64_t> draw_skip(uint32_t rand_skip, uint64_t key, size_t images, const Logger& log);

/// The order of `count` records in an epoch: as stored, or reshuffled in each epoch.
class EpochOrder {
 public:
  EpochOrder() = default;
  EpochOrder(int64_t count, bool shuffled, uint64_t key, uint32_t stream = 0)
      : count_(count), shuffled_(shuffled), key_(key), stream_(stream) {}

  /// The number of the record at `index` (below count) of an epoch. Caches the permutation of that
  /// epoch.
  int64_t at(int64_t epoch, int64_t index);

 private:
  int64_t count_ = 0;
  bool shuffled_ = false;
  uint64_t key_ = 0;
  uint32_t stream_ = 0;
  int64_t epoch_ = -1;
  std::vector<uint32_t> order_;
};

}  // namespace cafetiere
