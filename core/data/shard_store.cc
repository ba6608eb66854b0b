// SPDX-License-Identifier: Apache-2.0
#include "core/data/shard_store.h"

#include <utility>

namespace cafetiere {

ShardStore::ShardStore(RowSchema schema, int shards, ShardRange owned, int64_t total_rows)
    : schema_(std::move(schema)), owned_(owned), total_rows_(total_rows) {
  for (int shard = 0; shard < shards; ++shard) {
    counts_.push_back(total_rows / shards + (shard < total_rows % shards ? 1 : 0));
  }
  for (int shard = owned.begin; shard < owned.end; ++shard) {
    rows_.emplace_back(static_cast<size_t>(counts_[static_cast<size_t>(shard)]));
  }
}

void ShardStore::place(int64_t position, std::span<const std::byte> bytes) {
  const int64_t shard = position % shards() - owned_.begin;
  rows_[static_cast<size_t>(shard)][static_cast<size_t>(position / shards())] = bytes;
}

void ShardStore::adopt(ByteStore bytes) {
  if (bytes.spilled()) {
    bytes.expect_any_order();
    spilled_ = true;
  }
  stores_.push_back(std::move(bytes));
}

uint64_t ShardStore::read_ahead(int shard, std::span<const uint32_t> rows) const {
  constexpr uint64_t kFaultAround = 64 << 10;  // bytes that Linux maps around a touched page
  uint64_t bytes = 0;
  for (const uint32_t i : rows) {
    ByteStore::read_ahead(row(shard, i));
    bytes += row(shard, i).size() + kFaultAround;
  }
  return bytes;
}

void ShardStore::unmap_pages() const {
  for (const ByteStore& store : stores_) store.unmap_pages();
}

}  // namespace cafetiere
