// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string loss(const std::vector<int64_t>& dims, const std::vector<int64_t>& labels) {
  return input("x", dims) + input("label", labels) +
         layer("MultinomialLogisticLoss", "bottom: 'x' bottom: 'label' top: 'y'");
}

TEST(MultinomialLogisticLoss, Gradients) {
  const std::string scores =
      input("x", {4, 5}) + input("label", {4}) +
      layer("Softmax", "name: 'prob' bottom: 'x' top: 'p'") +
      layer("MultinomialLogisticLoss", "bottom: 'p' bottom: 'label' top: 'y'");
  check_layer({.layers = scores, .labels = 5});
  check_layer({.layers = loss({3, 2, 2, 1}, {3, 1, 1, 1}), .labels = 4, .numeric = false});
}

TEST(MultinomialLogisticLoss, Values) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(loss({2, 2}, {2}), {{"x", {0.5F, 0.5F, 1, 0}}, {"label", {0, 1}}},
                               caffe::TRAIN, *device);
    EXPECT_NEAR(figures["y"][0], (std::log(2) + 20 * std::log(10)) / 2, 1e-4)
        << "the logarithm is cut at 1e-20";
    EXPECT_TRUE(std::isfinite(evaluate(loss({2, 2}, {2}), {{"x", {1, 1, 1, 1}}, {"label", {-3, 7}}},
                                       caffe::TEST, *device)["y"][0]))
        << "labels beyond the classes, which training refuses";
  }
}

TEST(MultinomialLogisticLoss, Refusals) {
  EXPECT_THAT(refusal(loss({4, 5}, {4, 2})), HasSubstr("one label for each of the 4 positions"));
}

}  // namespace
}  // namespace cafetiere
