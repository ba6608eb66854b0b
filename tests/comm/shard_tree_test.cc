// SPDX-License-Identifier: Apache-2.0
#include "core/comm/shard_tree.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <deque>
#include <random>

#include "core/base/arena_block.h"
#include "core/comm/socket.h"
#include "core/comm/sub_group.h"
#include "ranks.h"

namespace cafetiere::test {
namespace {

using Arrays = std::vector<std::vector<float>>;

/// Values of very different magnitudes, so that another order of additions gives other bits.
Arrays random_shards(int shards, size_t floats) {
  std::mt19937 random(static_cast<unsigned>(shards));
  std::uniform_real_distribution<float> mantissa(-1, 1), exponent(-20, 20);
  Arrays arrays(shards, std::vector<float>(floats));
  for (auto& array : arrays) {
    for (float& x : array) x = std::ldexp(mantissa(random), static_cast<int>(exponent(random)));
  }
  return arrays;
}

/// The definition, word for word.
std::vector<float> tree_sum(const Arrays& shards, int begin, int end) {
  const int n = end - begin;
  if (n == 1) return shards[begin];
  int left = 1;
  while (left * 2 < n) left *= 2;
  auto sum = tree_sum(shards, begin, begin + left);
  const auto right = tree_sum(shards, begin + left, end);
  for (size_t i = 0; i < sum.size(); ++i) sum[i] += right[i];
  return sum;
}

bool same_bytes(std::span<const float> a, std::span<const float> b) {
  return std::ranges::equal(std::as_bytes(a), std::as_bytes(b));
}

/// Adds the rank's shards through one array that is overwritten each time, as a net's gradient is,
/// then reduces in place and gathers.
Status all_reduce(Group* group, const Arrays& shards, TreeSum* sum, std::vector<float>* arena) {
  const int rank = group ? group->rank() : 0, ranks = group ? group->size() : 1;
  const auto slices = even_slices(arena->size(), ranks);
  sum->reset();
  for (int s = sum->range().begin; s < sum->range().end; ++s) {
    *arena = shards[s];
    CFT_TRY(sum->add(*arena));
  }
  const std::span<float> mine(arena->data() + slices[rank], slices[rank + 1] - slices[rank]);
  CFT_TRY(reduce_scatter(group, *sum, slices, mine));
  return all_gather_slices(group, *arena, slices);
}

TEST(ShardTree, RangesPartitionTheShards) {
  for (int shards = 1; shards <= 9; ++shards) {
    for (int ranks = 1; ranks <= 12; ++ranks) {
      int next = 0;
      for (int r = 0; r < ranks; ++r) {
        const ShardRange range = shards_of_rank(r, ranks, shards);
        EXPECT_EQ(range.begin, next);
        next = range.end;
      }
      EXPECT_EQ(next, shards);
    }
  }
}

TEST(ShardTree, NodesAreTheLargestThatFit) {
  using Nodes = std::vector<ShardRange>;
  EXPECT_EQ(nodes_of({0, 7}, 7), (Nodes{{0, 7}}));
  EXPECT_EQ(nodes_of({0, 6}, 7), (Nodes{{0, 4}, {4, 6}}));
  EXPECT_EQ(nodes_of({1, 7}, 7), (Nodes{{1, 2}, {2, 4}, {4, 7}}));
  EXPECT_EQ(nodes_of({3, 5}, 8), (Nodes{{3, 4}, {4, 5}}));
  EXPECT_EQ(nodes_of({2, 2}, 8), Nodes{});
}

TEST(ShardTree, SiblingsShareAParent) {
  EXPECT_TRUE(are_siblings({0, 4}, {4, 5}, 5));
  EXPECT_TRUE(are_siblings({2, 3}, {3, 4}, 5));
  EXPECT_FALSE(are_siblings({1, 2}, {2, 3}, 5));
  EXPECT_FALSE(are_siblings({2, 4}, {4, 5}, 5));
  EXPECT_FALSE(are_siblings({0, 1}, {2, 3}, 5));
}

TEST(ShardTree, SlicesStartOnBlocksAndCoverTheArena) {
  for (size_t floats : {size_t{0}, size_t{1}, size_t{4096}, size_t{100'000}}) {
    const auto slices = even_slices(floats, 3);
    ASSERT_EQ(slices.size(), 4u);
    EXPECT_EQ(slices.front(), 0u);
    EXPECT_EQ(slices.back(), floats);
    for (int r = 0; r < 3; ++r) {
      EXPECT_LE(slices[r], slices[r + 1]);
      EXPECT_TRUE(slices[r] % kArenaBlock == 0 || slices[r] == floats);
    }
  }
}

TEST(ShardTree, KeepsFewPartialSums) {
  for (int shards = 1; shards <= 40; ++shards) {
    const auto arrays = random_shards(shards, 3);
    TreeSum sum({0, shards}, shards, 3, nullptr);
    for (const auto& array : arrays) {
      ASSERT_TRUE(sum.add(array).ok());
      EXPECT_LE(sum.partials().size(), std::bit_width(static_cast<unsigned>(shards - 1)) + 1u);
    }
    ASSERT_EQ(sum.partials().size(), 1u);
    EXPECT_TRUE(same_bytes({sum.partials()[0].data, 3}, tree_sum(arrays, 0, shards)));
    EXPECT_FALSE(sum.add(arrays[0]).ok());
  }
}

TEST(ShardTree, RefusesWhatDoesNotFit) {
  std::vector<float> four(4), five(5);
  TreeSum sum({0, 2}, 2, 4, nullptr);
  EXPECT_EQ(sum.add(five).code(), ErrorCode::kInternal);
  ASSERT_TRUE(sum.add(four).ok());
  const std::vector<size_t> slices = {0, 4}, wrong = {0, 5};
  EXPECT_EQ(reduce_scatter(nullptr, sum, slices, four).code(), ErrorCode::kInternal);
  ASSERT_TRUE(sum.add(four).ok());
  EXPECT_EQ(reduce_scatter(nullptr, sum, wrong, four).code(), ErrorCode::kInternal);
  EXPECT_EQ(reduce_scatter(nullptr, sum, slices, five).code(), ErrorCode::kInternal);
  EXPECT_TRUE(reduce_scatter(nullptr, sum, slices, four).ok());
}

class AllReduceTest : public TransportTest {};
INSTANTIATE_TEST_SUITE_P(Transports, AllReduceTest, kTransports, transport_name);

TEST_P(AllReduceTest, HasTheBitsOfTheTreeOnAnyNumberOfRanks) {
  const size_t floats = 3 * kArenaBlock + 1234;
  for (int ranks = 1; ranks <= 9; ++ranks) {
    auto groups = make_groups(GetParam(), ranks);
    for (int shards = ranks; shards <= 9; ++shards) {
      const Arrays arrays = random_shards(shards, floats);
      const auto expected = tree_sum(arrays, 0, shards);
      expect_ok(on_ranks(ranks, [&](int rank) -> Status {
        std::vector<float> arena(floats);
        TreeSum sum(shards_of_rank(rank, ranks, shards), shards, floats, nullptr);
        for (int round = 0; round < 2; ++round) {
          CFT_TRY(all_reduce(groups[rank].get(), arrays, &sum, &arena));
          EXPECT_TRUE(same_bytes(arena, expected)) << shards << " shards on " << ranks << " ranks";
        }
        return {};
      }));
    }
  }
}

TEST_P(AllReduceTest, LargeArraysTravelInSegmentsAndThreadsChangeNothing) {
  const size_t floats = 1'500'007;
  const int shards = 5, ranks = 2;
  const Arrays arrays = random_shards(shards, floats);
  const auto expected = tree_sum(arrays, 0, shards);
  auto groups = make_groups(GetParam(), ranks);
  expect_ok(on_ranks(ranks, [&](int rank) -> Status {
    std::vector<float> arena(floats);
    ThreadPool pool(2);
    TreeSum sum(shards_of_rank(rank, ranks, shards), shards, floats, &pool);
    CFT_TRY(all_reduce(groups[rank].get(), arrays, &sum, &arena));
    EXPECT_TRUE(same_bytes(arena, expected));
    return {};
  }));
}

TEST_P(AllReduceTest, SubGroupsSumOnTheirOwn) {
  const size_t floats = 600'007;
  auto groups = make_groups(GetParam(), 4);
  const Arrays arrays[] = {random_shards(2, floats), random_shards(3, floats)};
  expect_ok(on_ranks(4, [&](int rank) -> Status {
    SubGroup team(groups[rank].get(), rank % 2 == 0 ? std::vector{0, 2} : std::vector{3, 1});
    const Arrays& mine = arrays[rank % 2];
    const int shards = static_cast<int>(mine.size());
    std::vector<float> arena(floats);
    TreeSum sum(shards_of_rank(team.rank(), 2, shards), shards, floats, nullptr);
    CFT_TRY(all_reduce(&team, mine, &sum, &arena));
    EXPECT_TRUE(same_bytes(arena, tree_sum(mine, 0, shards)));
    return {};
  }));
}

TEST_P(AllReduceTest, SubGroupsRefuseRanksThatTheyDoNotHave) {
  auto groups = make_groups(GetParam(), 2);
  SubGroup alone(groups[0].get(), {0});
  const Send send{1, "x", 1};
  EXPECT_EQ(alone.exchange({&send, 1}, {}).code(), ErrorCode::kInternal);
}

TEST(AllReduce, NoGroupIsOneRank) {
  for (int shards : {1, 3}) {
    const Arrays arrays = random_shards(shards, 5000);
    std::vector<float> arena(5000);
    TreeSum sum({0, shards}, shards, 5000, nullptr);
    ASSERT_TRUE(all_reduce(nullptr, arrays, &sum, &arena).ok());
    EXPECT_TRUE(same_bytes(arena, tree_sum(arrays, 0, shards)));
  }
}

TEST(AllReduce, RanksWithoutShardsTakePart) {
  const int shards = 2, ranks = 4;
  const size_t floats = 5 * kArenaBlock;
  const Arrays arrays = random_shards(shards, floats);
  const auto expected = tree_sum(arrays, 0, shards);
  auto groups = make_local_groups(ranks);
  expect_ok(on_ranks(ranks, [&](int rank) -> Status {
    std::vector<float> arena(floats);
    TreeSum sum(shards_of_rank(rank, ranks, shards), shards, floats, nullptr);
    CFT_TRY(all_reduce(groups[rank].get(), arrays, &sum, &arena));
    EXPECT_TRUE(same_bytes(arena, expected));
    return {};
  }));
}

TEST_P(AllReduceTest, RanksMayHandOverSeveralArraysInDifferentPortions) {
  const std::vector<size_t> lengths = {200'000, 5 * kArenaBlock, 0, 77, 300'001};
  const std::vector<std::vector<size_t>> portions = {{5}, {1, 4}, {2, 2, 1}};
  const int ranks = 3;
  std::vector<Arrays> shards;
  for (const size_t floats : lengths) shards.push_back(random_shards(ranks, floats));
  auto groups = make_groups(GetParam(), ranks);
  expect_ok(on_ranks(ranks, [&](int rank) -> Status {
    Arrays arenas;
    std::vector<std::vector<size_t>> slices;
    std::vector<Reduction> reductions;
    std::vector<AllGatherOp> gathers;
    std::deque<TreeSum> sums;
    for (size_t i = 0; i < lengths.size(); ++i) {
      arenas.push_back(shards[i][rank]);
      slices.push_back(even_slices(lengths[i], ranks));
    }
    for (size_t i = 0; i < lengths.size(); ++i) {
      TreeSum& sum = sums.emplace_back(ShardRange{rank, rank + 1}, ranks, lengths[i], nullptr);
      CFT_TRY(sum.add(arenas[i]));
      const size_t begin = slices[i][rank], size = slices[i][rank + 1] - begin;
      reductions.push_back({sum, slices[i], std::span(arenas[i]).subspan(begin, size)});
      gathers.push_back({arenas[i], slices[i]});
    }
    std::span<const Reduction> left = reductions;
    for (const size_t count : portions[rank]) {
      CFT_TRY(reduce_scatter(groups[rank].get(), left.first(count)));
      left = left.subspan(count);
    }
    CFT_TRY(all_gather_slices(groups[rank].get(), gathers));
    for (size_t i = 0; i < lengths.size(); ++i) {
      EXPECT_TRUE(same_bytes(arenas[i], tree_sum(shards[i], 0, ranks))) << "array " << i;
    }
    return {};
  }));
}

TEST_P(AllReduceTest, ReadsLentArraysWhereTheyLie) {
  const size_t floats = 700'001;
  for (const int ranks : {2, 3}) {
    const Arrays arrays = random_shards(ranks, floats);
    const auto expected = tree_sum(arrays, 0, ranks);
    auto groups = make_groups(GetParam(), ranks);
    expect_ok(on_ranks(ranks, [&](int rank) -> Status {
      CFT_ASSIGN(const auto memory, SharedMemory::create(floats * sizeof(float)));
      groups[rank]->lend(memory);
      const std::span<float> arena(reinterpret_cast<float*>(memory->data()), floats);
      TreeSum sum({rank, rank + 1}, ranks, floats, nullptr);
      for (int round = 0; round < 100; ++round) {  // so that each meets the other at all points
        std::ranges::copy(arrays[rank], arena.begin());
        sum.reset();
        CFT_TRY(sum.add(arena));
        CFT_TRY(all_reduce(groups[rank].get(), sum, arena));
        EXPECT_TRUE(same_bytes(arena, expected));
      }
      return {};
    }));
  }
}

/// Rank 1 has nothing ready before rank 0 was asked for its second array.
class SlowSecond : public ReadySource {
 public:
  SlowSecond(int rank, std::span<const int> wakes, std::atomic<bool>& asked)
      : rank_(rank), wakes_(wakes), asked_(asked) {}
  Result<bool> ready(size_t i) override {
    if (rank_ == 0 && i == 1) {
      asked_ = true;
      eventfd_write(wakes_[1], 1);
    }
    return rank_ == 0 || asked_;
  }
  int wake_fd() const override { return wakes_[rank_]; }

 private:
  const int rank_;
  const std::span<const int> wakes_;
  std::atomic<bool>& asked_;
};

TEST_P(AllReduceTest, AnArrayThatIsReadyWaitsForNoPeer) {
  // In this process ranks exchange round by round.
  if (GetParam() == Transport::kLocal) GTEST_SKIP();
  const int ranks = 2;
  const size_t floats = 5 * kArenaBlock;
  const Arrays arrays = random_shards(ranks, floats);
  const Fd first(eventfd(0, EFD_CLOEXEC)), second(eventfd(0, EFD_CLOEXEC));
  const int wakes[] = {first.get(), second.get()};
  std::atomic<bool> asked = false;
  auto groups = make_groups(GetParam(), ranks);
  expect_ok(on_ranks(ranks, [&](int rank) -> Status {
    const auto slices = even_slices(floats, ranks);
    Arrays arenas(2, arrays[rank]);
    std::deque<TreeSum> sums;
    std::vector<Reduction> reductions;
    const size_t begin = slices[rank], size = slices[rank + 1] - begin;
    for (auto& arena : arenas) {
      CFT_TRY(sums.emplace_back(ShardRange{rank, rank + 1}, ranks, floats, nullptr).add(arena));
      reductions.push_back({sums.back(), slices, std::span(arena).subspan(begin, size)});
    }
    SlowSecond pace(rank, wakes, asked);
    CFT_TRY(reduce_scatter(groups[rank].get(), reductions, Wire::kFloat32, &pace));
    const auto expected = tree_sum(arrays, 0, ranks);
    for (const Reduction& r : reductions) {
      EXPECT_TRUE(same_bytes(r.out, std::span(expected).subspan(begin, size)));
    }
    return {};
  }));
}

TEST_P(AllReduceTest, GathersShardValuesInOrder) {
  const int shards = 7, k = 2;
  for (int ranks = 1; ranks <= 4; ++ranks) {
    auto groups = make_groups(GetParam(), ranks);
    expect_ok(on_ranks(ranks, [&](int rank) -> Status {
      const ShardRange range = shards_of_rank(rank, ranks, shards);
      std::vector<double> mine, all(shards * k);
      for (int s = range.begin; s < range.end; ++s) {
        mine.push_back(s + 0.25);
        mine.push_back(s + 0.5);
      }
      CFT_TRY(gather_shard_values(groups[rank].get(), shards, mine, k, all));
      for (int s = 0; s < shards; ++s) {
        EXPECT_EQ(all[s * k], s + 0.25);
        EXPECT_EQ(all[s * k + 1], s + 0.5);
      }
      return {};
    }));
  }
}

}  // namespace
}  // namespace cafetiere::test
