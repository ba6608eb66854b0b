// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string quantile(const std::vector<int64_t>& scores, const std::vector<int64_t>& targets,
                     const std::string& quantiles, const std::string& fields = "") {
  return input("x", scores) + input("t", targets) +
         layer("QuantileLoss", "bottom: 'x' bottom: 't' " + fields + " top: 'y'",
               "quantile_loss_param { " + quantiles + " }");
}

TEST(QuantileLoss, Gradients) {
  check_layer({quantile({4, 3}, {4, 1}, "quantile: 0.1 quantile: 0.5 quantile: 0.9")});
  check_layer({quantile({3, 4}, {3, 2}, "quantile: 0.25 quantile: 0.75")});
  check_layer({input("w", {4}) +
               quantile({4, 1}, {4}, "quantile: 0.3",
                        "propagate_down: true propagate_down: false propagate_down: false "
                        "bottom: 'w'")});
}

TEST(QuantileLoss, WeighsWhatIsAboveAndBelow) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(quantile({2, 2}, {2}, "quantile: 0.25 quantile: 0.5"),
                               {{"x", {1, 1, 2, 6}}, {"t", {5, 2}}}, caffe::TRAIN, *device);
    EXPECT_FLOAT_EQ(figures["y"][0], (0.25F * 4 + 0.5F * 4 + 0 + 0.5F * 4) / 2);
  }
}

TEST(QuantileLoss, Refusals) {
  EXPECT_THAT(refusal(quantile({4, 3}, {4}, "quantile: 0.5")),
              HasSubstr("1 scores for each target"));
  EXPECT_THAT(refusal(quantile({4, 1}, {4}, "quantile: 1")), HasSubstr("each between 0 and 1"));
  EXPECT_THAT(refusal(quantile({4, 1}, {4}, "")), HasSubstr("needs quantiles"));
}

}  // namespace
}  // namespace cafetiere
