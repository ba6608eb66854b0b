// SPDX-License-Identifier: Apache-2.0
// The model of time on many ranks, against closed forms and against the properties it must have.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "cli/scale/failures.h"
#include "cli/scale/step_time.h"
#include "cli/scale/stragglers.h"
#include "core/sync/auto_mode.h"

namespace cafetiere {
namespace {

const Link kPlain{"plain", 100e6, 1e-3, 0, 0};  // 100 MB/s, 1 ms, messages free
constexpr double kReports = 0.002;              // of its time: two trips a second

TEST(Link, KnowsNamesAndNumbers) {
  const auto known = parse_link("10gbe");
  ASSERT_TRUE(known.ok());
  EXPECT_NEAR(known->bytes_per_s, 1.177e9, 1e6);
  const auto own = parse_link("500,25");
  ASSERT_TRUE(own.ok());
  EXPECT_DOUBLE_EQ(own->bytes_per_s, 62.5e6);
  EXPECT_DOUBLE_EQ(own->latency_s, 0.025);
  EXPECT_DOUBLE_EQ(own->rank_rate(2), 31.25e6);
  const auto slow = parse_link("500,25,80");
  ASSERT_TRUE(slow.ok());
  EXPECT_DOUBLE_EQ(slow->rank_rate(), 10e6);
}

TEST(Link, SaysWhatItCouldBe) {
  for (const char* bad :
       {"", "fast", "0,1", "500,", ",5", "500,x", "nan,1", "1e300,1", "500", "1,1,0", "1,1,1,1"}) {
    const auto link = parse_link(bad);
    ASSERT_FALSE(link.ok()) << bad;
    EXPECT_THAT(link.status().message(), testing::HasSubstr("1gbe, 10gbe")) << bad;
  }
}

TEST(ExchangeTime, OneRankExchangesNothing) {
  EXPECT_EQ(exchange_seconds(kPlain, ExchangeKind::kTree, 1e6, {}), 0);
}

TEST(ExchangeTime, FollowsItsFormulas) {
  // 4 ranks, 4 MB: 3/4 of it twice at 100 MB/s and two latencies; 6 turns of a quarter.
  EXPECT_NEAR(exchange_seconds(kPlain, ExchangeKind::kTree, 1e6, {.ranks = 4}), 0.062, 1e-12);
  EXPECT_NEAR(exchange_seconds(kPlain, ExchangeKind::kRing, 1e6, {.ranks = 4}), 0.066, 1e-12);
  EXPECT_NEAR(exchange_seconds(kPlain, ExchangeKind::kTree, 1e6, {.ranks = 4, .wire_bytes = 2}),
              0.032, 1e-12);
}

TEST(ExchangeTime, ShardsThatAreNoNodeCostMore) {
  const auto with = [](int shards) {
    return exchange_seconds(kPlain, ExchangeKind::kTree, 1e6, {.ranks = 4, .shards = shards});
  };
  EXPECT_EQ(with(4), with(8));
  // Three shards a rank are two nodes: the reduce-scatter sends twice the bytes.
  EXPECT_NEAR(with(12) - with(4), 0.03, 1e-12);
}

TEST(ExchangeTime, HostsSaveTheirLink) {
  const ExchangeSetting setting{.ranks = 8, .ranks_per_host = 4};
  EXPECT_LT(exchange_seconds(kPlain, ExchangeKind::kHierarchical, 1e6, setting),
            exchange_seconds(kPlain, ExchangeKind::kTree, 1e6, setting) / 2);
  EXPECT_LT(exchange_seconds(kPlain, ExchangeKind::kTree, 1e6, {.ranks = 4, .ranks_per_host = 4}),
            0.002);
}

TEST(Stragglers, AgreeWithClosedForms) {
  for (const double spread : {0.05, 0.3, 1.0}) {
    const double one = std::exp(spread * spread / 2);
    EXPECT_NEAR(mean_of_slowest(1, spread), one, 1e-9);
    EXPECT_NEAR(mean_of_slowest(2, spread), one * std::erfc(-spread / 2), 1e-9);
    EXPECT_NEAR(spread_of_sum(spread, 1), spread, 1e-12);
  }
  EXPECT_NEAR(mean_of_slowest(64, 0), 1, 1e-9);
  EXPECT_GT(mean_of_slowest(4096, 0.05), mean_of_slowest(64, 0.05));
  EXPECT_NEAR(spread_of_sum(0.05, 100), 0.005, 1e-5);
}

TEST(StepTime, OneRankIsFullyEfficient) {
  const Work work{.seconds = 0.1, .rows = 32, .floats = 1e6};
  const ScaleSetting alone{.link = kPlain};
  EXPECT_NEAR(allreduce_time(work, alone).efficiency, 1, 1e-9);
  EXPECT_NEAR(average_time(work, alone, 10).efficiency, 1, 1e-9);
  EXPECT_NEAR(easgd_time(work, alone, 10).efficiency, 1, 1e-9);
  EXPECT_EQ(best_period(work, alone), 1);
}

TEST(StepTime, PeriodsAndShardsMakeExchangesRare) {
  const Work work{.seconds = 0.1, .rows = 32, .floats = 10e6};
  const ScaleSetting setting{.link = kPlain, .ranks = 4, .spread = 0, .backward = 0};
  const ModeTime step = allreduce_time(work, setting);
  EXPECT_NEAR(step.exchange, 0.602, 1e-9);
  EXPECT_NEAR(step.efficiency, 0.1 / 0.702 / (1 + kReports), 1e-9);
  EXPECT_NEAR(step.rows_per_s, 128 / 0.702 / (1 + kReports), 1e-6);
  EXPECT_NEAR(average_time(work, setting, 10).exchange, 0.0602, 1e-9);
  EXPECT_EQ(best_period(work, setting), AutoMode::period_for(0.1, 0.602));
  EXPECT_EQ(best_shards_per_rank(work, setting), 64);  // 54.2 would do
  EXPECT_EQ(best_shards_per_rank(work, setting, 8), 8);
}

TEST(StepTime, OnlyEasgdIgnoresTheSlowest) {
  const Work work{.seconds = 0.1, .rows = 32, .floats = 1e4};
  const ScaleSetting setting{.link = kPlain, .ranks = 64, .spread = 0.2};
  const double every = allreduce_time(work, setting).compute;
  const double period = average_time(work, setting, 10).compute;
  const double never = easgd_time(work, setting, 10).compute;
  EXPECT_GT(every, period);
  EXPECT_GT(period, never);
  EXPECT_NEAR(never, 0.1 * std::exp(0.02), 1e-9);
}

TEST(StepTime, WhatTravelsBesideMathematicsCostsNothing) {
  const Work work{.seconds = 0.1, .rows = 32, .floats = 1e6};
  const ScaleSetting setting{.link = kPlain, .ranks = 4, .spread = 0, .backward = 0.5};
  // 1 M floats are eight buckets: the sums of seven leave early. A trip takes a millisecond.
  EXPECT_NEAR(allreduce_time(work, setting).exchange, 0.001 + 0.03 / 8 + 0.031, 1e-9);
  EXPECT_NEAR(average_time(work, setting, 2).exchange, 0.062 / 2, 1e-9);
}

TEST(StepTime, AProcessorThatMovesBytesDoesNoMathematicsMeanwhile) {
  const Work work{.seconds = 0.1, .rows = 32, .floats = 1e6};
  ScaleSetting setting{.link = kPlain, .ranks = 4, .spread = 0, .backward = 0.5};
  const double free = allreduce_time(work, setting).exchange;
  setting.link.byte_s = 0.5 / setting.link.bytes_per_s;
  const double half = allreduce_time(work, setting).exchange;
  EXPECT_NEAR(half - free, 0.03 * 7 / 8 / 2, 1e-9);
}

TEST(StepTime, WhatTravelsBesideMathematicsNeedsNoTripOfItsOwn) {
  const Work work{.seconds = 0.1, .rows = 32, .floats = 1e6};
  ScaleSetting setting{.link = kPlain, .ranks = 2, .spread = 0, .backward = 0.5};
  setting.link.latency_s = 0.025;
  const double beside = allreduce_time(work, setting).exchange;
  setting.backward = 0;
  const double after = allreduce_time(work, setting).exchange;
  EXPECT_NEAR(after - beside, 0.02 * 7 / 8, 1e-9);
}

TEST(Failures, IntervalIsTheBest) {
  // The time that checkpoints and repeated work take, by the model that the formula solves.
  const double mtbf = 86400, checkpoint = 20;
  const auto wasted = [&](double interval) {
    return mtbf * std::expm1((interval + checkpoint) / mtbf) / interval;
  };
  const double best = best_interval(mtbf, checkpoint);
  EXPECT_NEAR(best, std::sqrt(2 * checkpoint * mtbf), 25);
  EXPECT_LT(wasted(best), wasted(best * 1.05));
  EXPECT_LT(wasted(best), wasted(best / 1.05));
}

TEST(Failures, GrowWithTheHosts) {
  const FailureCost one = failure_cost(1, {}), many = failure_cost(4096, {});
  EXPECT_NEAR(one.failures_per_day, 1.0 / 365, 1e-9);
  EXPECT_LT(many.interval_s, one.interval_s);
  EXPECT_GT(many.lost_s_per_day, one.lost_s_per_day);
  EXPECT_GT(many.share, one.share);
  EXPECT_LT(failure_cost(1 << 20, {.host_mtbf_s = 3600}).share, 1 + 1e-9);
}

}  // namespace
}  // namespace cafetiere
