// SPDX-License-Identifier: Apache-2.0
#include "core/sync/weight_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace cafetiere {
namespace {

/// What each of `ranks` ranks is told when those of `odd` have one wrong bit.
std::vector<Status> compare(int ranks, const std::vector<int>& odd) {
  auto groups = make_local_groups(ranks);
  std::vector<Status> told(static_cast<size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      std::vector<float> weights(1000, 0.5F);
      if (std::ranges::find(odd, rank) != odd.end()) weights[700] = std::nextafter(0.5F, 1.F);
      told[size_t(rank)] = compare_weights(groups[size_t(rank)].get(), weights, 20);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return told;
}

TEST(WeightCheck, EqualWeightsPass) {
  for (const Status& status : compare(3, {})) EXPECT_TRUE(status.ok()) << status.message();
}

TEST(WeightCheck, AllRanksAreToldWhichOneDiffers) {
  for (const Status& status : compare(4, {2})) {
    EXPECT_EQ(status.code(), ErrorCode::kInternal);
    EXPECT_THAT(status.message(), testing::HasSubstr("after iteration 20 the weights of rank 2 "));
  }
  for (const Status& status : compare(5, {1, 4})) {
    EXPECT_THAT(status.message(), testing::HasSubstr("of rank 1, 4 are not"));
  }
}

TEST(WeightCheck, WithoutAMajorityNobodyIsBlamed) {
  for (const auto& told : {compare(2, {1}), compare(4, {0, 3})}) {
    for (const Status& status : told) {
      EXPECT_EQ(status.code(), ErrorCode::kInternal);
      EXPECT_THAT(status.message(), testing::HasSubstr("no majority tells which ones are wrong"));
    }
  }
}

}  // namespace
}  // namespace cafetiere
