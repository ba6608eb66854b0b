// SPDX-License-Identifier: Apache-2.0
// ShardStore: the rows of the shards that a rank owns, in their canonical order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/base/shard_range.h"
#include "core/base/status.h"
#include "core/data/byte_store.h"
#include "core/data/row_schema.h"

namespace cafetiere {

/// The rows of all ranks, sorted by hash(seed, identity), have positions 0, 1, 2, ...; shard s of V
/// holds those whose position modulo V is s, in that order. The content of a shard therefore
/// depends only on the rows and the seed. Filled by sync/shuffle.h.
class ShardStore {
 public:
  /// Space for the rows of the `owned` shards out of `shards`, with `total_rows` rows in all.
  ShardStore(RowSchema schema, int shards, ShardRange owned, int64_t total_rows);

  const RowSchema& schema() const { return schema_; }
  int shards() const { return static_cast<int>(counts_.size()); }
  ShardRange owned() const { return owned_; }
  bool owns(int shard) const { return shard >= owned_.begin && shard < owned_.end; }

  /// Rows of all ranks.
  int64_t total_rows() const { return total_rows_; }
  /// Rows of every shard, including those owned by other ranks; they differ by at most one.
  const std::vector<int64_t>& counts() const { return counts_; }

  /// The encoded bytes of row i of an owned shard.
  std::span<const std::byte> row(int shard, int64_t i) const {
    return rows_[static_cast<size_t>(shard - owned_.begin)][static_cast<size_t>(i)];
  }

  /// Sets the row at a global position, whose shard must be owned. `bytes` must be in adopted
  /// memory.
  void place(int64_t position, std::span<const std::byte> bytes);
  /// Takes ownership of the memory of placed rows.
  void adopt(ByteStore bytes);

  /// Whether some rows are in files. The following two functions matter only then.
  bool spilled() const { return spilled_; }
  /// Asks the system to read rows of a shard before they are needed; returns an upper bound on the
  /// bytes this maps into the process.
  uint64_t read_ahead(int shard, std::span<const uint32_t> rows) const;
  /// Unmaps pages read from files; the system may keep them in its cache.
  void unmap_pages() const;

 private:
  RowSchema schema_;
  ShardRange owned_;
  int64_t total_rows_;
  std::vector<int64_t> counts_;
  std::vector<std::vector<std::span<const std::byte>>> rows_;  // per owned shard
  std::vector<ByteStore> stores_;
  bool spilled_ = false;
};

}  // namespace cafetiere
