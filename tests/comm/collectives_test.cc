// SPDX-License-Identifier: Apache-2.0
#include "core/comm/collectives.h"

#include <atomic>
#include <cstring>

#include "ranks.h"

namespace cafetiere::test {
namespace {

class CollectivesTest : public TransportTest {};
INSTANTIATE_TEST_SUITE_P(Transports, CollectivesTest, kTransports, transport_name);

std::vector<std::byte> bytes_of(int value, size_t count) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

TEST_P(CollectivesTest, BarrierHoldsUntilAllHaveCome) {
  for (int size : {2, 3, 5}) {
    auto groups = make_groups(GetParam(), size);
    std::atomic<int> come{0};
    expect_ok(on_ranks(size, [&](int rank) -> Status {
      for (int round = 1; round <= 20; ++round) {
        ++come;
        CFT_TRY(barrier(groups[rank].get()));
        EXPECT_GE(come.load(), round * size);
      }
      return {};
    }));
  }
}

TEST_P(CollectivesTest, BroadcastFromEveryRoot) {
  for (int size : {2, 3, 4, 5}) {
    auto groups = make_groups(GetParam(), size);
    expect_ok(on_ranks(size, [&](int rank) -> Status {
      for (int root = 0; root < size; ++root) {
        auto bytes = bytes_of(rank, 1000);
        CFT_TRY(broadcast(groups[rank].get(), root, bytes));
        EXPECT_EQ(bytes, bytes_of(root, 1000));
      }
      return {};
    }));
  }
}

TEST_P(CollectivesTest, GathersEqualAndUnequalParts) {
  const int size = 4;
  auto groups = make_groups(GetParam(), size);
  expect_ok(on_ranks(size, [&](int rank) -> Status {
    std::vector<std::byte> all(size * 5);
    CFT_TRY(all_gather(groups[rank].get(), bytes_of(rank, 5), all));
    for (int i = 0; i < size * 5; ++i) EXPECT_EQ(all[i], static_cast<std::byte>(i / 5));
    CFT_ASSIGN(const auto parts, all_gather_v(groups[rank].get(), bytes_of(rank, rank * 1000)));
    for (int peer = 0; peer < size; ++peer) EXPECT_EQ(parts[peer], bytes_of(peer, peer * 1000));
    return {};
  }));
}

TEST_P(CollectivesTest, AllToAllDeliversEachMessage) {
  const int size = 3;
  auto groups = make_groups(GetParam(), size);
  expect_ok(on_ranks(size, [&](int rank) -> Status {
    std::vector<std::vector<std::byte>> to;
    for (int peer = 0; peer < size; ++peer) to.push_back(bytes_of(rank * 10 + peer, peer * 77));
    CFT_ASSIGN(const auto from, all_to_all_v(groups[rank].get(), std::move(to)));
    for (int peer = 0; peer < size; ++peer) {
      EXPECT_EQ(from[peer], bytes_of(peer * 10 + rank, rank * 77));
    }
    return {};
  }));
}

TEST(Collectives, NoGroupIsOneRank) {
  EXPECT_TRUE(barrier(nullptr).ok());
  auto bytes = bytes_of(7, 3);
  EXPECT_TRUE(broadcast(nullptr, 0, bytes).ok());
  std::vector<std::byte> all(3);
  EXPECT_TRUE(all_gather(nullptr, bytes, all).ok());
  EXPECT_EQ(all, bytes);
  EXPECT_EQ(all_gather_v(nullptr, bytes)->at(0), bytes);
  EXPECT_EQ(all_to_all_v(nullptr, {bytes})->at(0), bytes);
}

TEST(Collectives, RefuseArgumentsThatDoNotFit) {
  auto bytes = bytes_of(7, 3);
  std::vector<std::byte> all(4);
  EXPECT_EQ(all_gather(nullptr, bytes, all).code(), ErrorCode::kInternal);
  EXPECT_EQ(broadcast(nullptr, 1, bytes).code(), ErrorCode::kInternal);
  EXPECT_EQ(all_to_all_v(nullptr, {}).status().code(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace cafetiere::test
