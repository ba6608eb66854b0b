// SPDX-License-Identifier: Apache-2.0
// Sampler: selects the rows of a shard's batches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

/// Exactly-once epochs over V shards. Sub-step q is batch q % n of epoch q / n, where n is the
/// number of batches of the largest shard. Each epoch permutes every shard by f(seed, epoch,
/// shard), so that any rank can request any (shard, q) at any time. The last batch of an epoch has
/// the remaining rows of the shard, possibly none.
class Sampler {
 public:
  /// `counts`: rows of each shard; `batch`: rows of a full batch.
  static Result<Sampler> make(std::vector<int64_t> counts, int64_t batch, uint64_t seed);

  int shards() const { return static_cast<int>(counts_.size()); }
  /// Rows of the whole shard.
  int64_t total_rows_of(int shard) const { return counts_[static_cast<size_t>(shard)]; }
  int64_t batch_size() const { return batch_; }
  int64_t batches_per_epoch() const { return batches_per_epoch_; }
  int64_t epoch(int64_t sub_step) const { return sub_step / batches_per_epoch_; }

  /// Rows of this shard's batch, and of all shards' batches together.
  int64_t rows(int shard, int64_t sub_step) const;
  int64_t total_rows(int64_t sub_step) const;

  /// The batch's rows as indices into the shard. Valid until the next call for the same shard.
  /// Threads may request different shards concurrently.
  std::span<const uint32_t> batch(int shard, int64_t sub_step);

 private:
  struct Permutation {
    int64_t epoch = -1;
    std::vector<uint32_t> order;
  };
  Sampler(std::vector<int64_t> counts, int64_t batch, int64_t batches_per_epoch, uint64_t key);
  void permute(int shard, int64_t epoch);

  std::vector<int64_t> counts_;
  int64_t batch_;
  int64_t batches_per_epoch_;
  uint64_t key_;
  std::vector<Permutation> permutations_;  // per shard, for the epoch requested last
};

}  // namespace cafetiere
