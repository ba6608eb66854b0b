// SPDX-License-Identifier: Apache-2.0
// shuffle_rows: shuffles the rows of all ranks and partitions them into shards.
#pragma once

#include <compare>
#include <cstdint>

#include "core/comm/group.h"
#include "core/data/row_table.h"
#include "core/data/shard_store.h"

namespace cafetiere {

/// The sort key of a row. The content breaks ties between different rows of one identity.
struct RowKey {
  Hash128 order;
  uint64_t content = 0;
  auto operator<=>(const RowKey&) const = default;
};
RowKey row_key(const RowTable& table, int64_t row, uint64_t seed);

/// Orders the rows of all ranks by hash(seed, identity), assigns them round-robin to `shards`
/// shards and sends each once, to the rank that owns its shard (shards_of_rank()). The same rows
/// give the same shards for any number of ranks and any initial distribution; rows of one identity
/// are ordered by their bytes. Every rank calls it, also one without rows; `mine` is emptied. A
/// null group is one rank, whose rows stay where they are. A rank that fails cancels the group.
Result<ShardStore> shuffle_rows(Group* group, RowTable&& mine, int shards, uint64_t seed);

}  // namespace cafetiere
