// SPDX-License-Identifier: Apache-2.0
// Replicas that a caller runs a round at a time.
#include <gtest/gtest.h>

#include <vector>

#include "tests/capi/handed.h"
#include "tests/capi/small_training.h"

namespace cafetiere {
namespace {

TEST(Replica, ARoundHasAnIteration) {
  const nlohmann::json options{
      {"solver", kSmallSolver}, {"net", kSmallNet}, {"sync", "mode: 'average'"}};
  cft_rounds* rounds = nullptr;
  ASSERT_EQ(cft_rounds_create(options.dump().c_str(), &rounds), CFT_OK) << cft_last_error();
  const auto told = nlohmann::json::parse(handed_text(cft_rounds_describe, rounds));
  std::vector<float> shared(told["floats"].get<size_t>());
  ASSERT_EQ(cft_rounds_shared(rounds, shared.data(), shared.size()), CFT_OK) << cft_last_error();
  cft_replica* replica = nullptr;
  ASSERT_EQ(cft_replica_create(options.dump().c_str(), &replica), CFT_OK) << cft_last_error();
  cft_rows* rows = small_rows(0);
  ASSERT_EQ(cft_replica_rows(replica, rows, 50), CFT_OK) << cft_last_error();
  const auto run = [&](int64_t steps) {
    char* report = nullptr;
    const int code = cft_replica_round(replica, 0, steps, shared.data(), shared.size(), &report);
    cft_free(report);
    return code;
  };
  for (const int64_t steps : {0, -1}) EXPECT_EQ(run(steps), CFT_INVALID_ARGUMENT) << steps;
  EXPECT_EQ(run(1), CFT_OK) << cft_last_error();
  cft_rows_destroy(rows);
  cft_replica_destroy(replica);
  cft_rounds_destroy(rounds);
}

}  // namespace
}  // namespace cafetiere
