// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "cafetiere/c_api.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

double step_seconds(int passes, int ranks) {
  const std::string net = R"(
    layer { name: "data" type: "Input" top: "data" top: "label"
      input_param { shape { dim: 8 dim: 16 } shape { dim: 8 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
      inner_product_param { num_output: 512 } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";
  const std::string options =
      nlohmann::json{{"net", net}, {"solver", "base_lr: 0.1 lr_policy: 'fixed'"}}.dump();
  double seconds = 0;
  EXPECT_EQ(cft_step_seconds(options.c_str(), 1, passes, ranks, &seconds), CFT_OK)
      << cft_last_error();
  return seconds;
}

TEST(StepSeconds, ArePassesAndAShareOfTheUpdate) {
  const TempDir folder;
  ::setenv("XDG_CACHE_HOME", folder.path("").c_str(), 1);
  const double one = step_seconds(1, 1), pass = step_seconds(2, 1) - one;
  const double half_update = one - step_seconds(1, 2);
  EXPECT_GT(pass, 0);
  EXPECT_GT(half_update, 0);
  EXPECT_NEAR(one, pass + 2 * half_update, 1e-9 * one);
  EXPECT_NEAR(step_seconds(3, 2), 3 * pass + half_update, 1e-9 * one);
}

TEST(StepSeconds, RefusesNoThreadsPassesOrRanks) {
  double seconds = 0;
  for (const auto& [threads, passes, ranks] : {std::array{0, 1, 1}, {1, 0, 1}, {1, 1, 0}}) {
    EXPECT_NE(cft_step_seconds("{}", threads, passes, ranks, &seconds), CFT_OK);
    EXPECT_NE(std::string(cft_last_error()).find("must be at least 1"), std::string::npos);
  }
}

}  // namespace
}  // namespace cafetiere
