// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string selu_dropout(const std::vector<int64_t>& dims, float ratio) {
  return input("x", dims) +
         layer("SeLuDropout", "bottom: 'x' top: 'y'",
               "selu_dropout_param { dropout_ratio: " + std::to_string(ratio) + " }");
}

TEST(SeLuDropout, Gradients) {
  check_layer({selu_dropout({4, 50}, 0.3F)});
  check_layer({selu_dropout({2, 3, 5, 4}, 0)});
  check_layer({.layers = selu_dropout({4, 50}, 0.3F), .phase = caffe::TEST});
}

// Of values with mean 0 and variance 1 both stay; the two values of a constant are a x + b and a alpha + b.
TEST(SeLuDropout, KeepsMeanAndVariance) {
  const double q = 0.8, alpha = -1.75809934;
  const double a = 1 / std::sqrt(q * (1 + alpha * alpha * (1 - q))), b = -a * (1 - q) * alpha;
  const auto cpu = make_cpu_device();
  const std::vector<float> y =
      evaluate(selu_dropout({100, 100}, 0.2F), {{"x", std::vector<float>(10000, 1)}}, caffe::TRAIN,
               *cpu)["y"];
  const auto count = [&](double value) {
    return std::ranges::count_if(y, [&](float v) { return std::fabs(double(v) - value) < 1e-6; });
  };
  EXPECT_NEAR(double(count(a + b)), 8000, 160);
  EXPECT_EQ(count(a + b) + count(a * alpha + b), 10000);
}

TEST(SeLuDropout, Refusals) { EXPECT_THAT(refusal(selu_dropout({4, 5}, 1)), HasSubstr("[0, 1)")); }

}  // namespace
}  // namespace cafetiere
