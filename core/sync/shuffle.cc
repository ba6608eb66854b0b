// SPDX-License-Identifier: Apache-2.0
#include "core/sync/shuffle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/comm/collectives.h"
#include "core/data/hash.h"

namespace cafetiere {
namespace {

using Bytes = std::vector<std::byte>;

// What a rank sends before it receives: buffers of this size are reused and stay in the caches.
constexpr size_t kRoundBytes = size_t{4} << 20;
// What rows in files may add to the process while their bytes are hashed.
constexpr size_t kMostMapped = size_t{64} << 20;
constexpr uint64_t kContentSeed = 0x636f6e74656e74;

template <class T>
void push(Bytes& bytes, const T& value) {
  const auto* from = reinterpret_cast<const std::byte*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

template <class T>
T read(const Bytes& bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// Checks that all ranks pass the same settings and schema; returns the number of rows of all.
Result<int64_t> agree(Group* group, const RowTable& mine, int shards, uint64_t seed) {
  struct Terms {
    Hash128 schema;
    uint64_t seed;
    int64_t shards, rows;
  };
  const std::string schema = mine.schema().signature();
  const Terms terms{hash128(std::as_bytes(std::span(schema)), 0), seed, shards, mine.rows()};
  std::vector<Terms> all(static_cast<size_t>(size_of(group)));
  CFT_TRY(all_gather(group, std::as_bytes(std::span(&terms, 1)),
                     std::as_writable_bytes(std::span(all))));
  int64_t total = 0;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].schema != terms.schema) {
      return invalid_argument(fmt::format(
          "rank {} and rank {} have different schemas; this one's is: {}. All ranks must be given "
          "rows of the same columns",
          rank, rank_of(group), schema));
    }
    if (all[rank].seed != seed || all[rank].shards != shards) {
      return invalid_argument(
          fmt::format("rank {} has {} shards and seed {}, rank {} has {} and seed {}; set the same "
                      "on all ranks",
                      rank, all[rank].shards, all[rank].seed, rank_of(group), shards, seed));
    }
    if (all[rank].rows < 0 || all[rank].rows > INT64_MAX - total) {
      return internal_error(fmt::format("rank {} counts {} rows", rank, all[rank].rows));
    }
    total += all[rank].rows;
  }
  return total;
}

/// The rank that sorts a key: the range of hashes is split evenly, in rank order.
size_t sorter_of(const RowKey& key, int ranks) {
  return static_cast<size_t>(
      static_cast<unsigned __int128>(key.order.high) * static_cast<unsigned>(ranks) >> 64);
}

/// The global positions of the keys that each rank sent to this one, in the order received.
Result<std::vector<Bytes>> sort_keys(Group* group, const std::vector<Bytes>& keys) {
  struct Entry {
    RowKey key;
    uint32_t rank;
    uint32_t index;
  };
  std::vector<Entry> entries;
  for (uint32_t rank = 0; rank < keys.size(); ++rank) {
    const size_t count = keys[rank].size() / sizeof(RowKey);
    for (uint32_t i = 0; i < count; ++i) {
      entries.push_back({read<RowKey>(keys[rank], i * sizeof(RowKey)), rank, i});
    }
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.key < b.key; });

  const auto count = static_cast<int64_t>(entries.size());
  std::vector<int64_t> counts(keys.size());
  CFT_TRY(all_gather(group, std::as_bytes(std::span(&count, 1)),
                     std::as_writable_bytes(std::span(counts))));
  int64_t position = 0;
  for (int rank = 0; rank < rank_of(group); ++rank) position += counts[static_cast<size_t>(rank)];

  std::vector<Bytes> answers;
  for (const Bytes& sent : keys)
    answers.emplace_back(sent.size() / sizeof(RowKey) * sizeof position);
  for (const Entry& entry : entries) {
    std::memcpy(answers[entry.rank].data() + entry.index * sizeof position, &position,
                sizeof position);
    ++position;
  }
  return answers;
}

/// The global position of each row of `mine`.
Result<std::vector<int64_t>> global_positions(Group* group, const RowTable& mine, int64_t total,
                                              uint64_t seed) {
  const int ranks = size_of(group);
  std::vector<Bytes> keys(static_cast<size_t>(ranks));
  std::vector<uint32_t> sorter(static_cast<size_t>(mine.rows()));
  size_t mapped = 0;
  for (int64_t row = 0; row < mine.rows(); ++row) {
    const RowKey key = row_key(mine, row, seed);
    const size_t rank = sorter_of(key, ranks);
    sorter[static_cast<size_t>(row)] = static_cast<uint32_t>(rank);
    push(keys[rank], key);
    mapped += mine.row(row).size();
    if (mapped > kMostMapped) {
      mapped = 0;
      mine.unmap_pages();
    }
  }
  CFT_ASSIGN(const std::vector<Bytes> received, all_to_all_v(group, std::move(keys)));
  CFT_ASSIGN(std::vector<Bytes> answers, sort_keys(group, received));
  CFT_ASSIGN(const std::vector<Bytes> answered, all_to_all_v(group, std::move(answers)));

  // Each sorter answers in the order of the keys that it was sent.
  std::vector<size_t> at(answered.size(), 0);
  std::vector<int64_t> positions;
  positions.reserve(sorter.size());
  for (const uint32_t rank : sorter) {
    const bool answers = answered[rank].size() - at[rank] >= sizeof(int64_t);
    const int64_t position = answers ? read<int64_t>(answered[rank], at[rank]) : -1;
    if (position < 0 || position >= total) {
      return internal_error(fmt::format("rank {} gave rows no positions among {}", rank, total));
    }
    positions.push_back(position);
    at[rank] += sizeof position;
  }
  return positions;
}

/// Stores what one rank sent in one round: for each row its position, its size and its bytes.
Status place_rows(const Bytes& message, ByteStore& bytes, ShardStore& store) {
  constexpr size_t kHead = sizeof(int64_t) + sizeof(uint64_t);
  for (size_t at = 0; at < message.size();) {
    const size_t left = message.size() - at;
    const auto position = left < kHead ? -1 : read<int64_t>(message, at);
    const auto size = left < kHead ? 0 : read<uint64_t>(message, at + sizeof position);
    if (position < 0 || position >= store.total_rows() || size > left - kHead ||
        !store.owns(static_cast<int>(position % store.shards()))) {
      return internal_error("a message with rows is damaged");
    }
    CFT_ASSIGN(std::byte* const row, bytes.allocate(size));
    std::memcpy(row, message.data() + at + kHead, size);
    store.place(position, {row, size});
    at += kHead + size;
  }
  return {};
}

/// Sends every row to the rank that owns its shard, in rounds that bound the memory in flight, and
/// frees what is sent.
Status move_rows(Group* group, RowTable& mine, const std::vector<int64_t>& positions,
                 ShardStore& store) {
  const int ranks = size_of(group);
  std::vector<size_t> owner;
  for (int rank = 0; rank < ranks; ++rank) {
    const ShardRange range = shards_of_rank(rank, ranks, store.shards());
    owner.insert(owner.end(), static_cast<size_t>(range.size()), static_cast<size_t>(rank));
  }
  ByteStore bytes(mine.budget());
  int64_t next = 0;
  for (bool more = true; more;) {
    std::vector<Bytes> to(static_cast<size_t>(ranks));
    for (size_t sent = 0; next < mine.rows() && sent < kRoundBytes; ++next) {
      const int64_t position = positions[static_cast<size_t>(next)];
      const std::span<const std::byte> row = mine.row(next);
      Bytes& message = to[owner[static_cast<size_t>(position % store.shards())]];
      push(message, position);
      push(message, uint64_t{row.size()});
      message.insert(message.end(), row.begin(), row.end());
      sent += row.size();
    }
    mine.release_before(next);
    CFT_ASSIGN(const std::vector<Bytes> received, all_to_all_v(group, std::move(to)));
    for (const Bytes& message : received) CFT_TRY(place_rows(message, bytes, store));

    const int64_t left = mine.rows() - next;
    std::vector<int64_t> all_left(static_cast<size_t>(ranks));
    CFT_TRY(all_gather(group, std::as_bytes(std::span(&left, 1)),
                       std::as_writable_bytes(std::span(all_left))));
    more = std::any_of(all_left.begin(), all_left.end(), [](int64_t n) { return n > 0; });
  }
  store.adopt(std::move(bytes));
  return {};
}

Result<ShardStore> shuffle_to_shards(Group* group, RowTable& mine, int shards, uint64_t seed) {
  if (shards < 1) {
    return invalid_argument(fmt::format("there are {} shards; use 1 or more", shards));
  }
  CFT_ASSIGN(const int64_t total, agree(group, mine, shards, seed));
  CFT_ASSIGN(const std::vector<int64_t> positions, global_positions(group, mine, total, seed));
  const int ranks = size_of(group);
  ShardStore store(mine.schema(), shards, shards_of_rank(rank_of(group), ranks, shards), total);
  if (ranks > 1) {
    CFT_TRY(move_rows(group, mine, positions, store));
    mine.take_store();
    return store;
  }
  for (int64_t row = 0; row < mine.rows(); ++row) {
    store.place(positions[static_cast<size_t>(row)], mine.row(row));
  }
  store.adopt(mine.take_store());
  return store;
}

}  // namespace

RowKey row_key(const RowTable& table, int64_t row, uint64_t seed) {
  const bool by_id = table.schema().id >= 0;
  return {hash128(table.identity(row), seed),
          by_id ? hash128(table.row(row), kContentSeed).low : 0};
}

Result<ShardStore> shuffle_rows(Group* group, RowTable&& mine, int shards, uint64_t seed) {
  auto store = shuffle_to_shards(group, mine, shards, seed);
  // The others would wait for this rank until they time out.
  if (!store.ok() && group) group->cancel();
  return store;
}

}  // namespace cafetiere
