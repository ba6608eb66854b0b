// SPDX-License-Identifier: Apache-2.0
// The ring beside the tree.
#include "core/comm/ring.h"

#include <random>

#include "core/base/arena_block.h"
#include "core/comm/collectives.h"
#include "ranks.h"

namespace cafetiere::test {
namespace {

/// Small whole numbers: every sum is exact, in 16 bits too.
std::vector<float> whole_numbers(int s, size_t floats) {
  std::mt19937 random(static_cast<unsigned>(s) + 1);
  std::vector<float> values(floats);
  for (float& v : values) v = static_cast<float>(static_cast<int>(random() % 9) - 4);
  return values;
}

struct Case {
  Transport transport;
  Wire wire;
};

class RingTest : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Cases, RingTest,
                         testing::Values(Case{Transport::kLocal, Wire::kFloat32},
                                         Case{Transport::kTcp, Wire::kFloat32},
                                         Case{Transport::kShared, Wire::kFloat32},
                                         Case{Transport::kLocal, Wire::kBfloat16},
                                         Case{Transport::kShared, Wire::kFloat16}),
                         [](const auto& info) {
                           return transport_name({info.param.transport, 0}) +
                                  std::to_string(static_cast<int>(info.param.wire));
                         });

TEST_P(RingTest, SumsWhatTheTreeSums) {
  for (size_t floats : {size_t{1}, 5 * kArenaBlock + 77, size_t{200'001}}) {
    for (int ranks : {1, 2, 3, 4}) {
      const int shards = 2 * ranks + 1;
      const auto slices = even_slices(floats, ranks);
      std::vector<float> expected(floats, 0);
      for (int s = 0; s < shards; ++s) {
        const auto values = whole_numbers(s, floats);
        for (size_t i = 0; i < floats; ++i) expected[i] += values[i];
      }
      auto groups = make_groups(GetParam().transport, ranks);
      expect_ok(on_ranks(ranks, [&](int rank) -> Status {
        Group* group = groups[rank].get();
        TreeSum sum(shards_of_rank(rank, ranks, shards), shards, floats, nullptr);
        std::vector<float> arena;
        for (int s = sum.range().begin; s < sum.range().end; ++s) {
          arena = whole_numbers(s, floats);
          CFT_TRY(sum.add(arena));
        }
        const std::span<float> mine(arena.data() + slices[rank], slices[rank + 1] - slices[rank]);
        CFT_TRY(ring_reduce_scatter(group, sum, slices, mine, GetParam().wire));
        CFT_TRY(ring_all_gather(group, arena, slices, GetParam().wire));
        EXPECT_EQ(arena, expected) << floats << " floats on rank " << rank << " of " << ranks;
        return {};
      }));
    }
  }
}

TEST(Ring, RanksEndWithTheSameBits) {
  const int ranks = 3;
  const size_t floats = 3 * kArenaBlock + 5;
  const auto slices = even_slices(floats, ranks);
  std::vector<std::vector<float>> arenas(ranks);
  auto groups = make_local_groups(ranks);
  for (Wire wire : {Wire::kFloat32, Wire::kBfloat16, Wire::kFloat16}) {
    expect_ok(on_ranks(ranks, [&](int rank) -> Status {
      arenas[rank] = whole_numbers(rank, floats);
      for (float& v : arenas[rank]) v *= 0.1f;
      TreeSum sum({rank, rank + 1}, ranks, floats, nullptr);
      CFT_TRY(sum.add(arenas[rank]));
      const std::span<float> all(arenas[rank]);
      CFT_TRY(ring_reduce_scatter(groups[rank].get(), sum, slices,
                                  all.subspan(slices[rank], slices[rank + 1] - slices[rank]),
                                  wire));
      return ring_all_gather(groups[rank].get(), arenas[rank], slices, wire);
    }));
    EXPECT_EQ(arenas[0], arenas[1]);
    EXPECT_EQ(arenas[0], arenas[2]);
  }
}

TEST(Ring, RefusesWhatDoesNotFit) {
  auto groups = make_local_groups(2);
  std::vector<float> four(4);
  TreeSum sum({0, 1}, 2, 4, nullptr);
  ASSERT_TRUE(sum.add(four).ok());
  const std::vector<size_t> wrong = {0, 2, 5}, slices = {0, 2, 4};
  EXPECT_EQ(ring_reduce_scatter(groups[0].get(), sum, wrong, four).code(), ErrorCode::kInternal);
  EXPECT_EQ(ring_reduce_scatter(groups[0].get(), sum, slices, four).code(), ErrorCode::kInternal);
  EXPECT_EQ(ring_all_gather(groups[0].get(), four, wrong).code(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace cafetiere::test
