// SPDX-License-Identifier: Apache-2.0
#include "core/data/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace cafetiere {
namespace {

Sampler sampler_of(std::vector<int64_t> counts, int64_t batch, uint64_t seed = 1) {
  auto sampler = Sampler::make(std::move(counts), batch, seed);
  EXPECT_TRUE(sampler.ok()) << sampler.status().message();
  return std::move(sampler).value();
}

std::vector<uint32_t> batch_of(Sampler& sampler, int shard, int64_t q) {
  const auto rows = sampler.batch(shard, q);
  return {rows.begin(), rows.end()};
}

TEST(Sampler, EveryRowOnceAnEpoch) {
  Sampler sampler = sampler_of({10, 9, 9}, 4);
  EXPECT_EQ(sampler.batches_per_epoch(), 3);
  for (int64_t epoch = 0; epoch < 5; ++epoch) {
    for (int shard = 0; shard < 3; ++shard) {
      std::multiset<uint32_t> seen;
      for (int64_t b = 0; b < 3; ++b) {
        const auto rows = batch_of(sampler, shard, epoch * 3 + b);
        EXPECT_EQ(static_cast<int64_t>(rows.size()), sampler.rows(shard, epoch * 3 + b));
        seen.insert(rows.begin(), rows.end());
      }
      std::multiset<uint32_t> all;
      for (uint32_t i = 0; i < (shard == 0 ? 10u : 9u); ++i) all.insert(i);
      EXPECT_EQ(seen, all);
    }
  }
}

TEST(Sampler, TailsAreShortAndMayBeEmpty) {
  Sampler sampler = sampler_of({5, 4}, 4);
  EXPECT_EQ(sampler.batches_per_epoch(), 2);
  EXPECT_EQ(sampler.rows(0, 1), 1);
  EXPECT_EQ(sampler.rows(1, 1), 0);
  EXPECT_TRUE(sampler.batch(1, 1).empty());
  EXPECT_EQ(sampler.total_rows(0), 8);
  EXPECT_EQ(sampler.total_rows(1), 1);
  EXPECT_EQ(sampler.epoch(3), 1);
}

TEST(Sampler, AskingInAnyOrderGivesTheSame) {
  Sampler forward = sampler_of({100, 99}, 7), random = sampler_of({100, 99}, 7);
  std::vector<std::vector<uint32_t>> expected;
  for (int64_t q = 0; q < 60; ++q) {
    for (int shard = 0; shard < 2; ++shard) expected.push_back(batch_of(forward, shard, q));
  }
  for (int64_t i = 0; i < 120; ++i) {
    const int64_t pick = i * 77 % 120;
    EXPECT_EQ(batch_of(random, static_cast<int>(pick % 2), pick / 2),
              expected[static_cast<size_t>(pick)]);
  }
}

TEST(Sampler, SeedEpochAndShardChangeTheOrder) {
  Sampler a = sampler_of({50, 50}, 50), b = sampler_of({50, 50}, 50, 2);
  const auto order = batch_of(a, 0, 0);
  EXPECT_NE(order, batch_of(a, 1, 0));
  EXPECT_NE(order, batch_of(a, 0, 1));
  EXPECT_NE(order, batch_of(b, 0, 0));
}

TEST(Sampler, PermutationsAreEven) {
  Sampler sampler = sampler_of({4}, 4);
  std::vector<int> first(4);
  for (int64_t q = 0; q < 4000; ++q) ++first[sampler.batch(0, q)[0]];
  for (int count : first) EXPECT_NEAR(count, 1000, 130);
}

TEST(Sampler, RefusesWhatCannotBeSampled) {
  EXPECT_THAT(Sampler::make({0, 0}, 4, 1).status().message(), testing::HasSubstr("no rows"));
  EXPECT_THAT(Sampler::make({4}, 0, 1).status().message(), testing::HasSubstr("batch_size"));
  EXPECT_THAT(Sampler::make({int64_t{1} << 33}, 4, 1).status().message(),
              testing::HasSubstr("more shards"));
}

}  // namespace
}  // namespace cafetiere
