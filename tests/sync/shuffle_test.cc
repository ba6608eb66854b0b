// SPDX-License-Identifier: Apache-2.0
#include "core/sync/shuffle.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "tests/data/rows.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;

/// Encoded rows, one string each.
using Rows = std::vector<std::string>;
/// The rows of each shard, in order.
using Shards = std::map<int, Rows>;

std::string_view kNoId = R"({"columns": [{"name": "x", "type": "u8"}], "id": ""})";
std::string_view kWithId =
    R"({"columns": [{"name": "k", "type": "i32"}, {"name": "x", "type": "u8"}], "id": "k"})";

std::string to_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

using Budgets = std::vector<std::shared_ptr<RowBudget>>;

RowTable table_of(std::string_view schema, const Rows& rows,
                  std::shared_ptr<RowBudget> budget = nullptr) {
  RowTable table(*RowSchema::parse(schema), std::move(budget));
  std::string chunk;
  for (const std::string& row : rows) chunk += row;
  const Status status =
      table.append(static_cast<int64_t>(rows.size()), std::as_bytes(std::span(chunk)));
  EXPECT_TRUE(status.ok()) << status.message();
  return table;
}

/// Runs fn(rank, group) on as many threads as there are parts.
void on_ranks(int ranks, const std::function<void(int, Group*)>& fn) {
  if (ranks == 1) return fn(0, nullptr);
  auto groups = make_local_groups(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] { fn(rank, groups[static_cast<size_t>(rank)].get()); });
  }
  for (std::thread& thread : threads) thread.join();
}

Shards shuffle_parts(std::string_view schema, const std::vector<Rows>& parts, int shards,
                     uint64_t seed, const Budgets& budgets = {}) {
  const int ranks = static_cast<int>(parts.size());
  std::vector<Shards> shuffled(parts.size());
  int64_t total = 0;
  for (const Rows& part : parts) total += static_cast<int64_t>(part.size());
  on_ranks(ranks, [&](int rank, Group* group) {
    const auto r = static_cast<size_t>(rank);
    RowTable mine = table_of(schema, parts[r], budgets.empty() ? nullptr : budgets[r]);
    auto store = shuffle_rows(group, std::move(mine), shards, seed);
    ASSERT_TRUE(store.ok()) << store.status().message();
    EXPECT_EQ(store->total_rows(), total);
    EXPECT_EQ(store->owned().begin, rank * shards / ranks);
    for (int s = store->owned().begin; s < store->owned().end; ++s) {
      Rows& rows = shuffled[static_cast<size_t>(rank)][s];
      for (int64_t i = 0; i < store->counts()[static_cast<size_t>(s)]; ++i) {
        rows.push_back(to_text(store->row(s, i)));
      }
    }
  });
  Shards all;
  for (Shards& some : shuffled) all.merge(some);
  return all;
}

/// `count` rows of random bytes and sizes; every fifth is a copy of an earlier one.
Rows random_rows(int count, bool with_id) {
  std::mt19937 random(7);
  Rows rows;
  for (int i = 0; i < count; ++i) {
    if (i % 5 == 4) {
      rows.push_back(rows[random() % rows.size()]);
      continue;
    }
    RowBytes row;
    // Ids come twice, mostly with different bytes behind them.
    if (with_id) row.add(static_cast<int32_t>(i / 2));
    std::vector<uint8_t> x(random() % 40);
    for (uint8_t& value : x) value = static_cast<uint8_t>(random());
    rows.push_back(to_text(row.add_all(x).span()));
  }
  return rows;
}

std::vector<Rows> split(Rows rows, int ranks, int way) {
  std::mt19937 random(static_cast<unsigned>(way));
  if (way > 0) std::shuffle(rows.begin(), rows.end(), random);
  std::vector<Rows> parts(static_cast<size_t>(ranks));
  for (size_t i = 0; i < rows.size(); ++i) {
    // Way 2 leaves all ranks but the last without rows.
    const size_t rank = way == 2 ? parts.size() - 1 : random() % parts.size();
    parts[rank].push_back(rows[i]);
  }
  return parts;
}

TEST(Shuffle, DependsOnTheRowsAlone) {
  for (const bool with_id : {false, true}) {
    const std::string_view schema = with_id ? kWithId : kNoId;
    for (const int count : {0, 1, 3, 500}) {
      const Rows rows = random_rows(count, with_id);
      for (const int shards : {1, 4, 7}) {
        const Shards expected = shuffle_parts(schema, {rows}, shards, 11);
        ASSERT_EQ(expected.size(), static_cast<size_t>(shards));
        for (int ranks = 1; ranks <= 4; ++ranks) {
          for (const int way : {0, 1, 2}) {
            EXPECT_EQ(shuffle_parts(schema, split(rows, ranks, way), shards, 11), expected)
                << count << " rows, " << shards << " shards, " << ranks << " ranks, way " << way;
          }
        }
      }
    }
  }
}

TEST(Shuffle, KeepsEveryRowAndEvensTheShards) {
  const Rows rows = random_rows(503, false);
  const Shards shuffled = shuffle_parts(kNoId, split(rows, 3, 1), 5, 2);
  std::multiset<std::string> given(rows.begin(), rows.end()), kept;
  for (const auto& [shard, some] : shuffled) {
    EXPECT_EQ(some.size(), shard < 3 ? 101u : 100u);
    kept.insert(some.begin(), some.end());
  }
  EXPECT_EQ(kept, given);
}

TEST(Shuffle, AnotherSeedGivesAnotherOrder) {
  const Rows rows = random_rows(100, true);
  EXPECT_NE(shuffle_parts(kWithId, {rows}, 2, 1), shuffle_parts(kWithId, {rows}, 2, 2));
}

TEST(Shuffle, MovesMoreThanOneRoundHolds) {
  Rows rows;
  for (int i = 0; i < 20; ++i) {
    std::vector<uint8_t> x(1 << 20, static_cast<uint8_t>(i));
    rows.push_back(to_text(RowBytes().add_all(x).span()));
  }
  EXPECT_EQ(shuffle_parts(kNoId, split(rows, 2, 2), 3, 1), shuffle_parts(kNoId, {rows}, 3, 1));
}

TEST(Shuffle, IsTheSameWhereRowsLieInFiles) {
  const TempDir folder;
  Rows rows;
  for (int i = 0; i < 40; ++i) {
    std::vector<uint8_t> x(1 << 20, static_cast<uint8_t>(i));
    rows.push_back(to_text(RowBytes().add(i).add_all(x).span()));
  }
  const Shards expected = shuffle_parts(kWithId, {rows}, 3, 1);
  for (const int ranks : {1, 2}) {
    Budgets budgets;
    for (int rank = 0; rank < ranks; ++rank) {
      budgets.push_back(std::make_shared<RowBudget>(4 << 20, folder.path("")));
    }
    EXPECT_EQ(shuffle_parts(kWithId, split(rows, ranks, 1), 3, 1, budgets), expected);
    for (const auto& budget : budgets) EXPECT_TRUE(budget->take(4 << 20)) << "not given back";
  }
}

TEST(Shuffle, RefusesRanksThatDisagree) {
  on_ranks(2, [&](int rank, Group* group) {
    const auto store = shuffle_rows(group, table_of(rank == 0 ? kNoId : kWithId, {}), 2, 1);
    ASSERT_FALSE(store.ok());
    EXPECT_THAT(store.status().message(), HasSubstr("different schemas"));
  });
  on_ranks(2, [&](int rank, Group* group) {
    const auto store = shuffle_rows(group, table_of(kNoId, {}), 2 + rank, 1);
    ASSERT_FALSE(store.ok());
    EXPECT_THAT(store.status().message(), HasSubstr("set the same on all ranks"));
  });
  EXPECT_THAT(shuffle_rows(nullptr, table_of(kNoId, {}), 0, 1).status().message(),
              HasSubstr("0 shards"));
}

}  // namespace
}  // namespace cafetiere
