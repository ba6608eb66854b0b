// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string center_loss(const std::vector<int64_t>& x, int classes, const std::string& more = "") {
  return input("x", x) + input("label", {x[0]}) +
         layer("CenterLoss", "bottom: 'x' bottom: 'label' top: 'y' " + more,
               "center_loss_param { num_output: " + std::to_string(classes) +
                   " center_filler { type: 'xavier' } }");
}

TEST(CenterLoss, Gradients) {
  // The centers move by a rule that is no gradient.
  check_layer({.layers = center_loss({7, 5}, 4), .labels = 4, .numeric = false});
  check_layer(
      {.layers = center_loss({6, 3, 2}, 3, "loss_weight: 0.5"), .labels = 3, .numeric = false});
}

// In double precision with NumPy, from the formula: rows 0 and 2 are of class 0, none of class 3.
TEST(CenterLoss, ValuesOfNumPy) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    for (const float weight : {1.F, 0.25F}) {
      const std::string text =
          center_loss({4, 2}, 4, "loss_weight: " + std::to_string(weight) + " ");
      auto net = TestNet::build(text, caffe::TRAIN);
      ASSERT_TRUE(net.ok()) << net.status().message();
      std::ranges::copy(std::vector<float>{0, 1, 1, 1, 2, -1, 5, 5}, (*net)->param(0).begin());
      auto plan = (*net)->plan(*device, 0);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      const std::vector<float> x = {1, 2, 0.5F, -1, 3, 0, -1, 1}, labels = {0, 1, 0, 2};
      std::ranges::copy(x, (*plan)->inputs()[0].data);
      std::ranges::copy(labels, (*plan)->inputs()[1].data);
      (*plan)->outputs()[0].diff[0] = weight;
      ThreadPool pool(2);
      ASSERT_TRUE((*plan)->run(pool, {}).ok());
      EXPECT_FLOAT_EQ((*plan)->outputs()[0].data[0], 3.65625F);
      const std::vector<float> dx = {0.25F, 0.25F, -0.125F, -0.5F, 0.75F, -0.25F, -0.75F, 0.5F};
      for (size_t i = 0; i < dx.size(); ++i) {
        EXPECT_FLOAT_EQ((*plan)->input_diffs()[0].data[i], weight * dx[i]);
      }
      const std::vector<float> moved = {-4 / 3.F, 0, 0.25F, 1, 1.5F, -1, 0, 0};
      for (size_t i = 0; i < moved.size(); ++i) {
        EXPECT_FLOAT_EQ((*net)->param_diff(0)[i], moved[i]) << "whatever the loss weighs";
      }
    }
  }
}

// Central differences of the loss by each value of x.
TEST(CenterLoss, GradientForTheFeaturesIsThatOfTheLoss) {
  auto net = TestNet::build(center_loss({5, 3}, 4), caffe::TRAIN);
  ASSERT_TRUE(net.ok()) << net.status().message();
  for (size_t i = 0; i < 12; ++i) (*net)->param(0)[i] = 0.3F * float(i % 5) - 0.5F;
  const auto device = make_ref_device();
  auto plan = (*net)->plan(*device, 0);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  float* x = (*plan)->inputs()[0].data;
  for (int i = 0; i < 15; ++i) x[i] = 0.2F * float(i * i % 11) - 1;
  std::ranges::copy(std::vector<float>{0, 3, 1, 0, 2}, (*plan)->inputs()[1].data);
  (*plan)->outputs()[0].diff[0] = 1;
  ThreadPool pool(1);
  const auto loss = [&] {
    EXPECT_TRUE((*plan)->run(pool, {}).ok());
    return double((*plan)->outputs()[0].data[0]);
  };
  loss();
  const std::vector<float> dx((*plan)->input_diffs()[0].data, (*plan)->input_diffs()[0].data + 15);
  constexpr float kStep = 1 / 64.F;
  for (size_t i = 0; i < dx.size(); ++i) {
    const float at = x[i];
    x[i] = at + kStep;
    const double above = loss();
    x[i] = at - kStep;
    EXPECT_NEAR(dx[i], (above - loss()) / (2 * double(kStep)), 1e-3) << i;
    x[i] = at;
  }
}

TEST(CenterLoss, Refusals) {
  EXPECT_THAT(refusal(center_loss({4, 2}, 0)), HasSubstr("num_output"));
  EXPECT_THAT(refusal(input("x", {4, 2}) + input("label", {3}) +
                      layer("CenterLoss", "bottom: 'x' bottom: 'label' top: 'y'",
                            "center_loss_param { num_output: 2 }")),
              HasSubstr("one label for each of 4 rows"));
}

}  // namespace
}  // namespace cafetiere
