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

}  // namespace cafetiere
