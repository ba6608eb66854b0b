// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string huber(const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                  const std::string& delta) {
  return input("a", a) + input("b", b) +
         layer("HuberLoss", "bottom: 'a' bottom: 'b' top: 'y'",
               "huber_loss_param { delta: " + delta + " }");
}

TEST(HuberLoss, Gradients) {
  check_layer({huber({3, 5}, {3, 5}, "0.3")});
  check_layer({huber({2, 6}, {2, 3, 2}, "1")});
  check_layer({input("w", {3}) + input("a", {3, 4}) + input("b", {3, 4}) +
               layer("HuberLoss", "bottom: 'a' bottom: 'b' bottom: 'w' top: 'y'",
                     "propagate_down: true propagate_down: true propagate_down: false")});
}

TEST(HuberLoss, SquaresWithinDeltaAndSizesBeyond) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(huber({2, 2}, {2, 2}, "2"),
                               {{"a", {1, 2, -6, 0}}, {"b", {0, 0, 0, 0}}}, caffe::TRAIN, *device);
    EXPECT_FLOAT_EQ(figures["y"][0], (0.5F + 2 + 2 * (6 - 1)) / 2);
  }
}

TEST(HuberLoss, Refusals) {
  EXPECT_THAT(refusal(huber({3, 5}, {3, 4}, "1")), HasSubstr("one batch size and element count"));
  EXPECT_THAT(refusal(huber({3, 5}, {3, 5}, "0")), HasSubstr("delta must be above 0"));
}

}  // namespace
}  // namespace cafetiere
