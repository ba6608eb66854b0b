// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string softmax_loss_layer(const std::vector<int64_t>& dims, const std::vector<int64_t>& labels,
                               const std::string& fields = "",
                               const std::string& tops = "top: 'y'") {
  return input("x", dims) + input("label", labels) +
         layer("SoftmaxWithLoss", "bottom: 'x' bottom: 'label' " + tops, fields);
}

TEST(SoftmaxLoss, Gradients) {
  check_layer({.layers = softmax_loss_layer({4, 5}, {4}), .labels = 5});
  check_layer({.layers = softmax_loss_layer({2, 4, 3, 2}, {2, 1, 3, 2}), .labels = 4});
  check_layer(
      {.layers = softmax_loss_layer({2, 3, 4}, {2, 3}, "softmax_param { axis: 2 }"), .labels = 4});
}

TEST(SoftmaxLoss, Normalizations) {
  for (const char* mode : {"FULL", "VALID", "BATCH_SIZE", "NONE"}) {
    check_layer({.layers = softmax_loss_layer(
                     {2, 4, 3, 2}, {2, 3, 2},
                     std::string("loss_param { ignore_label: 1 normalization: ") + mode + " }"),
                 .labels = 4});
  }
  check_layer(
      {.layers = softmax_loss_layer({4, 5}, {4}, "loss_param { normalize: false }"), .labels = 5});
}

// Positions that take several blocks, some of them left out.
TEST(SoftmaxLoss, ManyPositions) {
  check_layer(
      {.layers = softmax_loss_layer({3, 21, 37, 41}, {3, 37, 41}, "loss_param { ignore_label: 4 }"),
       .batches = {},
       .labels = 21,
       .numeric = false});
  check_layer({.layers = softmax_loss_layer({70, 1003}, {70}),
               .batches = {},
               .labels = 1003,
               .numeric = false});
}

// The gradient of the second top is ignored, as in Caffe.
TEST(SoftmaxLoss, AlsoGivesTheProbabilities) {
  check_layer({.layers = softmax_loss_layer({4, 5}, {4}, "", "top: 'y' top: 'mask'"), .labels = 5});
}

TEST(SoftmaxLoss, AnUnweightedLossHasNoGradient) {
  const std::string net =
      softmax_loss_layer({4, 5}, {4}, "loss_weight: 0 loss_weight: 0", "top: 'y' top: 'p'") +
      layer("InnerProduct", "name: 'ip' bottom: 'p' top: 'z'",
            "inner_product_param { num_output: 2 }");
  auto built = TestNet::build(net, caffe::TRAIN);
  ASSERT_TRUE(built.ok()) << built.status().message();
  const auto cpu = make_cpu_device();
  const std::vector<float*> data(2, (*built)->param(0).data());
  auto plan =
      Plan::compile((*built)->graph(), *cpu, {data, data},
                    {.batch = 0, .backward = true, .feed_gradients = true, .outputs = {"z"}});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
}

TEST(SoftmaxLoss, Values) {
  const std::vector<float> scores = {0, 0, 0, 0, 1000, 0};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto value = [&](const std::string& fields, std::vector<float> labels) {
      return evaluate(softmax_loss_layer({3, 2}, {3}, fields),
                      {{"x", scores}, {"label", std::move(labels)}}, caffe::TRAIN, *device)["y"][0];
    };
    EXPECT_NEAR(value("", {0, 1, 0}), 2 * std::log(2) / 3, 1e-6);
    EXPECT_NEAR(value("loss_param { ignore_label: 1 }", {0, 1, 0}), std::log(2) / 2, 1e-6);
    EXPECT_NEAR(value("loss_param { normalization: NONE }", {0, 1, 0}), 2 * std::log(2), 1e-6);
    EXPECT_EQ(value("loss_param { ignore_label: 0 }", {0, 0, 0}), 0) << "nothing is left";
    EXPECT_NEAR(value("", {0, 1, 1}), (2 * std::log(2) - std::log(1.17549435e-38)) / 3, 1e-4)
        << "the logarithm is cut at the smallest normal number";
  }
}

std::string weighted_softmax(const std::vector<int64_t>& dims, const std::vector<int64_t>& labels,
                             const std::vector<int64_t>& weights, const std::string& fields = "") {
  return input("w", weights) +
         softmax_loss_layer(
             dims, labels,
             "propagate_down: true propagate_down: false propagate_down: false " + fields,
             "bottom: 'w' top: 'y'");
}

TEST(SoftmaxLoss, WeightsOfImagesAndPositions) {
  check_layer({.layers = weighted_softmax({4, 5}, {4}, {4}), .labels = 5});
  check_layer({.layers = weighted_softmax({4, 5}, {4}, {4, 1}), .labels = 5});
  check_layer({.layers = weighted_softmax({2, 4, 3, 2}, {2, 3, 2}, {2}), .labels = 4});
  check_layer({.layers = weighted_softmax({2, 4, 3, 2}, {2, 3, 2}, {2, 3, 2},
                                          "loss_param { ignore_label: 1 }"),
               .labels = 4});
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const float loss = evaluate(weighted_softmax({3, 2}, {3}, {3}),
                                {{"x", {0, 0, 0, 0, 0, 0}}, {"label", {0, 1, 0}}, {"w", {0, 2, 5}}},
                                caffe::TRAIN, *device)["y"][0];
    EXPECT_NEAR(loss, 7 * std::log(2) / 3, 1e-6) << "divided by the rows";
  }
  EXPECT_THAT(refusal(weighted_softmax({4, 5}, {4}, {3})),
              HasSubstr("a weight for each of 4 rows, but weights are 3"));
}

// SegNet's: the sum is weighted, the divisor is not.
TEST(SoftmaxLoss, WeightsClasses) {
  const std::string fields =
      "loss_param { weight_by_label_freqs: true ignore_label: 1 class_weighting: [2, 0.5, 3, 1] }";
  check_layer({.layers = softmax_loss_layer({2, 4, 3, 2}, {2, 3, 2}, fields), .labels = 4});
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto value = [&](const std::string& weights) {
      return evaluate(softmax_loss_layer({3, 2}, {3}, "loss_param { " + weights + " }"),
                      {{"x", {0, 0, 0, 0, 0, 0}}, {"label", {0, 1, 1}}}, caffe::TRAIN,
                      *device)["y"][0];
    };
    EXPECT_NEAR(value("weight_by_label_freqs: true class_weighting: [2, 0.25]"),
                std::log(2.F) * 2.5F / 3, 1e-6);
    EXPECT_NEAR(value("class_weighting: [2, 0.25]"), std::log(2.F), 1e-6);
  }
}

TEST(SoftmaxLoss, Refusals) {
  EXPECT_THAT(
      refusal(softmax_loss_layer({4, 5}, {4}, "loss_param { weight_by_label_freqs: true }")),
      HasSubstr("given 0 times for 5 classes"));
  EXPECT_THAT(
      refusal(softmax_loss_layer({4, 5}, {3})),
      AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("one label for each of the 4 positions")));
  EXPECT_THAT(refusal(input("x", {4, 5}) + layer("SoftmaxWithLoss", "bottom: 'x' top: 'y'")),
              HasSubstr("1 bottom(s) but takes 2 to 3"));
  EXPECT_THAT(refusal(softmax_loss_layer({4, 5}, {4}, "loss_weight: 1 loss_weight: 1")),
              HasSubstr("loss_weight is given 2 time(s) for 1 top(s)"));
}

}  // namespace
}  // namespace cafetiere
