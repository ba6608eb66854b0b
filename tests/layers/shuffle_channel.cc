// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string shuffle(const std::vector<int64_t>& dims, int group) {
  return input("x", dims) + layer("ShuffleChannel", "bottom: 'x' top: 'y'",
                                  "shuffle_channel_param { group: " + std::to_string(group) + " }");
}

TEST(ShuffleChannel, Gradients) {
  check_layer({shuffle({4, 6, 3, 2}, 3)});
  check_layer({shuffle({4, 32, 2, 2}, 4)});
  check_layer({shuffle({4, 6}, 2)});
}

// torch.nn.functional.channel_shuffle of arange(6).
TEST(ShuffleChannel, ValuesOfTorch) {
  const Figures inputs = {{"x", {0, 1, 2, 3, 4, 5}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto values = [&](int group) {
      return evaluate(shuffle({1, 6, 1, 1}, group), inputs, caffe::TEST, *device)["y"];
    };
    EXPECT_THAT(values(2), ElementsAre(0, 3, 1, 4, 2, 5));
    EXPECT_THAT(values(3), ElementsAre(0, 2, 4, 1, 3, 5));
    EXPECT_THAT(values(1), ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

TEST(ShuffleChannel, Refusals) {
  EXPECT_THAT(refusal(shuffle({1, 6, 1, 1}, 4)), HasSubstr("group 4 must divide"));
  EXPECT_THAT(refusal(shuffle({1, 6, 1, 1}, 0)), HasSubstr("group 0 must divide"));
}

}  // namespace
}  // namespace cafetiere
