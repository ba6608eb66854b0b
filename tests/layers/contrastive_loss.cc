// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

std::string contrastive_layer(const std::vector<int64_t>& a, const std::vector<int64_t>& b,
                              const std::vector<int64_t>& similar, const std::string& fields = "") {
  return input("a", a) + input("b", b) + input("label", similar) +
         layer("ContrastiveLoss", "bottom: 'a' bottom: 'b' bottom: 'label' top: 'y'",
               "contrastive_loss_param { " + fields + " }");
}

TEST(ContrastiveLoss, Gradients) {
  check_layer({.layers = contrastive_layer({6, 3}, {6, 3}, {6}, "margin: 2.5"), .labels = 2});
  check_layer(
      {.layers = contrastive_layer({6, 3, 1, 1}, {6, 3}, {6, 1}, "margin: 4 legacy_version: true"),
       .labels = 2});
}

TEST(ContrastiveLoss, Values) {
  const Figures inputs = {{"a", {0, 0, 3, 0}}, {"b", {0, 1, 0, 4}}, {"label", {0, 1}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto value = [&](const std::string& fields) {
      return evaluate(contrastive_layer({2, 2}, {2, 2}, {2}, fields), inputs, caffe::TRAIN,
                      *device)["y"][0];
    };
    EXPECT_FLOAT_EQ(value("margin: 3"), (4.F + 25) / 4);
    EXPECT_FLOAT_EQ(value("margin: 3 legacy_version: true"), (2.F + 25) / 4);
    EXPECT_FLOAT_EQ(value("margin: 0.5"), 25.F / 4) << "apart enough";
  }
}

TEST(ContrastiveLoss, EqualPairsHaveNoDirection) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(contrastive_layer({2, 2}, {2, 2}, {2}), {}, caffe::TRAIN, *device);
    EXPECT_FLOAT_EQ(figures["y"][0], 0.5F);
    EXPECT_THAT(figures["a diff"], Each(0));
  }
}

TEST(ContrastiveLoss, Refusals) {
  EXPECT_THAT(refusal(contrastive_layer({6, 3}, {6, 4}, {6})),
              HasSubstr("two bottoms (N, C) of one size"));
  EXPECT_THAT(refusal(contrastive_layer({6, 3, 2}, {6, 6}, {6})),
              HasSubstr("two bottoms (N, C) of one size"));
  EXPECT_THAT(refusal(contrastive_layer({6, 3}, {6, 3}, {5})),
              HasSubstr("one similarity for each pair"));
}

}  // namespace
}  // namespace cafetiere
