// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string sigmoid_cross_entropy_layer(const std::vector<int64_t>& logits,
                                        const std::vector<int64_t>& targets,
                                        const std::string& fields = "") {
  return input("x", logits) + input("t", targets) +
         layer("SigmoidCrossEntropyLoss", "bottom: 'x' bottom: 't' top: 'y'",
               "loss_param { " + fields + " }");
}

TEST(SigmoidCrossEntropyLoss, Gradients) {
  check_layer({sigmoid_cross_entropy_layer({4, 5}, {4, 5})});
  check_layer({sigmoid_cross_entropy_layer({2, 3, 4}, {2, 12})});
  for (const char* mode : {"FULL", "VALID", "BATCH_SIZE", "NONE"}) {
    check_layer({sigmoid_cross_entropy_layer(
        {4, 5}, {4, 5}, std::string("ignore_label: 1 normalization: ") + mode)});
  }
}

TEST(SigmoidCrossEntropyLoss, Values) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto value = [&](const std::string& fields, const std::vector<float>& x) {
      return evaluate(sigmoid_cross_entropy_layer({2, 2}, {2, 2}, fields),
                      {{"x", x}, {"t", {0, 1, 1, 0}}}, caffe::TRAIN, *device)["y"][0];
    };
    EXPECT_NEAR(value("", {0, 0, 0, 0}), 2 * std::log(2), 1e-6) << "divided by the images";
    EXPECT_NEAR(value("normalization: VALID", {0, 0, 0, 0}), std::log(2), 1e-6);
    EXPECT_NEAR(value("normalize: true", {0, 0, 0, 0}), std::log(2), 1e-6);
    EXPECT_NEAR(value("ignore_label: 0 normalization: NONE", {0, 0, 0, 0}), 2 * std::log(2), 1e-6);
    EXPECT_NEAR(value("", {500, -500, 500, -500}), 500, 1e-3) << "no overflow";
  }
}

TEST(SigmoidCrossEntropyLoss, Weights) {
  const auto weighted = [](const std::vector<int64_t>& weights) {
    return input("x", {4, 3}) + input("t", {4, 3}) + input("w", weights) +
           layer("SigmoidCrossEntropyLoss", "bottom: 'x' bottom: 't' bottom: 'w' top: 'y'",
                 "propagate_down: true propagate_down: false propagate_down: false");
  };
  check_layer({weighted({4})});
  check_layer({weighted({4, 3})});
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(weighted({4}), {{"w", {1, 0, 3, 0}}}, caffe::TRAIN, *device);
    EXPECT_NEAR(figures["y"][0], 3 * std::log(2), 1e-6);
  }
  EXPECT_THAT(refusal(weighted({3})), HasSubstr("a weight for each of 4 rows"));
}

TEST(SigmoidCrossEntropyLoss, Refusals) {
  EXPECT_THAT(refusal(sigmoid_cross_entropy_layer({4, 5}, {4, 4})),
              HasSubstr("one target for each logit"));
}

}  // namespace
}  // namespace cafetiere
