// SPDX-License-Identifier: Apache-2.0
// How rank 0 reads what the ranks keep, and what the others hear of it.
#include "core/sync/mode_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <thread>

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr size_t kArenaFloats = 10;

/// Three ranks keep floats [0, 3), [3, 6) and [6, 9) of an array, a replica each, and nobody the last
/// float. A float's value is its place, and 100 more in a replica.
struct Kept {
  explicit Kept(int rank) {
    for (size_t i = 0; i < kArenaFloats; ++i) whole[i] = float(i), own[i] = float(100 + i);
    for (int r = 0; r < 3; ++r) {
      const size_t begin = 3 * size_t(r);
      placed.replicas.push_back({{{r, 0, kArenaFloats, r == rank ? own.data() : nullptr}}});
      if (placed.history.empty()) placed.history.emplace_back();
      placed.history[0].push_back({r, begin, begin + 3, r == rank ? &whole[begin] : nullptr});
    }
  }
  std::array<float, kArenaFloats> whole{}, own{};
  PlacedState placed{.mode = "test"};
};

/// What each rank gets of a use of their state.
std::vector<Status> show(const StateUse& use) {
  auto groups = make_local_groups(3);
  std::vector<Status> statuses(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const Kept kept(rank);
      statuses[size_t(rank)] = show_placed(groups[size_t(rank)].get(), kept.placed, use);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

TEST(ModeState, PiecesComeFromTheRanksThatKeepThem) {
  const auto statuses = show([](ModeState& state) -> Status {
    EXPECT_EQ(state.mode, "test");
    EXPECT_EQ(state.kinds, 1U);
    EXPECT_EQ(state.replicas, 3U);
    for (size_t begin = 0; begin < kArenaFloats; ++begin) {
      for (size_t count = 0; count <= kArenaFloats - begin; ++count) {
        std::vector<float> piece(count, -1.F);
        CFT_TRY(state.read({StateArray::kHistory}, begin, piece));
        for (size_t i = 0; i < count; ++i) {
          EXPECT_EQ(piece[i], begin + i == 9 ? 0.F : float(begin + i));
        }
      }
    }
    std::vector<float> replica(2);
    CFT_TRY(state.read({StateArray::kReplica, 0, 2}, 5, replica));
    EXPECT_THAT(replica, testing::ElementsAre(105, 106));
    return {};
  });
  for (const Status& status : statuses) EXPECT_TRUE(status.ok()) << status.message();
}

TEST(ModeState, AllRanksHearWhyRank0Failed) {
  const auto statuses = show([](ModeState& state) -> Status {
    std::vector<float> piece(kArenaFloats);
    CFT_TRY(state.read({StateArray::kHistory}, 0, piece));
    return io_error("the disk is full");
  });
  EXPECT_EQ(statuses[0].code(), ErrorCode::kIo);
  for (const size_t rank : {1, 2}) {
    EXPECT_EQ(statuses[rank].code(), ErrorCode::kUnavailable);
    EXPECT_THAT(statuses[rank].message(),
                AllOf(HasSubstr("rank 0"), HasSubstr("the disk is full")));
  }
}

}  // namespace
}  // namespace cafetiere
