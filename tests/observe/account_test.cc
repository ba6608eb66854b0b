// SPDX-License-Identifier: Apache-2.0
#include "core/observe/account.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace cafetiere {
namespace {

double sum(const TimeAccount::Seconds& seconds) {
  return std::accumulate(seconds.begin(), seconds.end(), 0.);
}

/// Keeps the processor busy until its clock has moved on.
void pass_time() {
  const auto begin = TimeAccount::Clock::now();
  while (TimeAccount::Clock::now() - begin < std::chrono::milliseconds(2)) continue;
}

TEST(TimeAccount, IsTheTimeSinceItWasMade) {
  const auto before = TimeAccount::Clock::now();
  TimeAccount account;
  pass_time();
  account.change(Activity::kComputing);
  pass_time();
  {
    const TimeAccount::Span waiting(&account, Activity::kNetwork);
    pass_time();
    {
      const TimeAccount::Span computing(&account, Activity::kComputing);
      pass_time();
    }
    EXPECT_EQ(account.activity(), Activity::kNetwork);
  }
  EXPECT_EQ(account.activity(), Activity::kComputing);
  const TimeAccount::Seconds seconds = account.seconds();
  const std::chrono::duration<double> passed = TimeAccount::Clock::now() - before;
  EXPECT_LE(sum(seconds), passed.count());
  EXPECT_GE(seconds[size_t(Activity::kComputing)], 0.004);
  EXPECT_GE(seconds[size_t(Activity::kNetwork)], 0.002);
  EXPECT_GE(seconds[size_t(Activity::kStarting)], 0.002);
  EXPECT_EQ(seconds[size_t(Activity::kData)], 0);
}

TEST(Account, AddsUpToCoresTimesSeconds) {
  const TimeAccount::Seconds first{6, 1, 2, 0, 1, 0}, second{3, 0, 5, 0, 0, 1};
  const Account account = account_of(std::vector{first, second}, 2, 10, 3.6);
  EXPECT_EQ(account.cores, 4);
  double hours = 0;
  for (const auto& [name, part] : account.core_hours) hours += part;
  EXPECT_DOUBLE_EQ(hours * 3600, 40);
  EXPECT_DOUBLE_EQ(account.cost, 0.04);
  EXPECT_EQ(account.core_hours.back().first, "idle");
  EXPECT_DOUBLE_EQ(account.core_hours.back().second * 3600, 2);
  EXPECT_EQ(to_text(account),
            "10 s x 4 cores = 0.01111 core-hours: computing 45.0 %, data 5.0 %, network 35.0 %, "
            "storing 5.0 %, starting 5.0 %, idle 5.0 %; cost 0.04");
}

TEST(Account, ComesBackFromJson) {
  Account account = account_of(std::vector{TimeAccount::Seconds{6, 1, 2, 0, 1, 0}}, 1, 12, 1);
  account.rows_used = 5'000'000'000;
  const auto back = parse_event(to_json(account));
  ASSERT_TRUE(back.ok()) << back.status().message();
  const Account& read = std::get<Account>(*back);
  EXPECT_EQ(read.rows_used, account.rows_used);
  EXPECT_EQ(read.core_hours, account.core_hours);
  EXPECT_EQ(read.cost, account.cost);
  EXPECT_EQ(read.cores, 1);
  EXPECT_EQ(read.seconds, 12);
}

}  // namespace
}  // namespace cafetiere
