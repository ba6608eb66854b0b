// SPDX-License-Identifier: Apache-2.0
// ShardStore: the rows of the shards that one rank owns, in their canonical order.
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

/// The rows of all ranks, ordered by hash(seed, identity), have positions 0, 1, 2, ...; shard s of
/// V holds those whose position is s modulo V, in that order. So the content of a shard depends on
/// the rows and the seed alone. sync/shuffle.h fills it.
class ShardStore {
 public:
  /// Space for the rows of `owned`, of `shards` shards with `total_rows` rows in all.
  ShardStore(RowSchema schema, int shards, ShardRange owned, int64_t total_rows);

  const RowSchema& schema() const { return schema_; }
  int shards() const { return static_cast<int>(counts_.size()); }
  ShardRange owned() const { return owned_; }
  bool owns(int shard) const { return shard >= owned_.begin && shard < owned_.end; }

  /// Rows of all ranks.
  int64_t total_rows() const { return total_rows_; }
  /// Rows of every shard, also of those that other ranks own; they differ by at most one.
  const std::vector<int64_t>& counts() const { return counts_; }

  /// Row i of an owned shard: its encoded bytes.
  std::span<const std::byte> row(int shard, int64_t i) const {
    return rows_[static_cast<size_t>(shard - owned_.begin)][static_cast<size_t>(i)];
  }

  /// Sets the row at a global position, whose shard must be owned. `bytes`: in adopted memory.
  void place(int64_t position, std::span<const std::byte> bytes);
  /// Takes ownership of the memory of placed rows.
  void adopt(ByteStore bytes);

  /// Whether some rows lie in files. Then these two matter.
  bool spilled() const { return spilled_; }
  /// Has the system read a shard's rows, by their numbers, before they are needed; returns how much
  /// of this process that may map, in bytes.
  uint64_t read_ahead(int shard, std::span<const uint32_t> rows) const;
  /// Unmaps what was read, which the system may keep in its cache.
  void unmap_pages() const;

 private:
  RowSchema schema_;
  ShardRange owned_;
  int64_t total_rows_;
  std::vector<int64_t> counts_;
  std::vector<std::vector<std::span<const std::byte>>> rows_;  // by owned shard
  std::vector<ByteStore> stores_;
  bool spilled_ = false;
};

}  // namespace cafetiere
