// SPDX-License-Identifier: Apache-2.0
// In which order records are read: sequential or shuffled, epoch after epoch, without state that
// could be lost.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace cafetiere {

/// The records that a source reads one after the other are dealt to the shards in turn, as Caffe's
/// multi-GPU solver does it. The position in that endless sequence of row `row` of a shard's batch.
inline int64_t sequence_position(int64_t sub_step, int64_t row, int64_t batch, int shard,
                                 int64_t shards) {
  return (sub_step * batch + row) * shards + shard;
}

/// A random permutation in place, by Fisher and Yates: a function of the values, `key`, `stream` and
/// `epoch` alone.
void shuffle(std::span<uint32_t> values, uint64_t key, uint32_t stream, int64_t epoch);

/// The order of `count` records in every epoch: as they are, or shuffled anew in each.
class EpochOrder {
 public:
  EpochOrder() = default;
  EpochOrder(int64_t count, bool shuffled, uint64_t key, uint32_t stream = 0)
      : count_(count), shuffled_(shuffled), key_(key), stream_(stream) {}

  /// Record number `index`, below count, of an epoch. Keeps the permutation of the epoch that was
  /// asked last.
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
