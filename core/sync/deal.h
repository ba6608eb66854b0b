// SPDX-License-Identifier: Apache-2.0
// deal: rows from wherever they are to the shards they belong to.
#pragma once

#include <compare>
#include <cstdint>

#include "core/comm/group.h"
#include "core/data/row_table.h"
#include "core/data/shard_store.h"

namespace cafetiere {

/// What rows are ordered by. The content only matters where ids are equal and rows are not.
struct RowKey {
  Hash128 order;
  uint64_t content = 0;
  auto operator<=>(const RowKey&) const = default;
};
RowKey row_key(const RowTable& table, int64_t row, uint64_t seed);

/// Orders the rows of all ranks by hash(seed, identity), deals them to `shards` shards in turn and
/// moves each once, to the rank that owns its shard (shards_of_rank()). The same rows give the same
/// shards for any number of ranks and however the rows were spread over them; rows of one identity
/// are ordered by their bytes. Every rank calls it, also one without rows; `mine` is emptied. A
/// null group is one rank, whose rows stay where they are. When one rank fails, it cancels the
/// group.
Result<ShardStore> deal(Group* group, RowTable&& mine, int shards, uint64_t seed);

}  // namespace cafetiere
