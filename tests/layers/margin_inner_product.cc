// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string margin(const std::vector<int64_t>& x, int outputs, const std::string& fields,
                   const std::string& wires = "top: 'y'") {
  return input("x", x) + input("label", {x[0]}) +
         layer("MarginInnerProduct", "bottom: 'x' bottom: 'label' " + wires,
               "margin_inner_product_param { num_output: " + std::to_string(outputs) +
                   " weight_filler { type: 'xavier' } " + fields + " }");
}

TEST(MarginInnerProduct, Gradients) {
  // The fork's are no true gradients.
  for (const std::string type : {"SINGLE", "DOUBLE", "TRIPLE", "QUADRUPLE"}) {
    check_layer({.layers = margin({7, 5}, 4, "base: 0.5 type: " + type, "top: 'y' top: 'lambda'"),
                 .labels = 4,
                 .numeric = false});
  }
  check_layer({.layers = margin({7, 3, 2}, 3, "type: DOUBLE"), .labels = 3, .numeric = false});
}

struct Golden {
  std::string fields;
  std::vector<float> y, dx;
};

// In double precision with NumPy from psi(angle) = (-1)^k cos(m angle) - 2 k and its derivative.
TEST(MarginInnerProduct, ValuesOfNumPy) {
  const std::vector<Golden> all = {
      {"",
       {-0.436436F, 1.333333F, 1.F, -0.327327F, 0, 1.44F, 1.287486F, -0.266667F, -1.32F},
       {-0.235736F, 0.201201F, 0.128528F, 0.536977F, -0.235155F, 0.353954F, -0.388838F, 0.486086F,
        -0.477677F}},
      {"type: DOUBLE base: 0",
       {-2.457549F, 1.333333F, 1.F, -0.327327F, 0, -0.202234F, 1.287486F, -1.892245F, -1.32F},
       {-0.391788F, -0.072643F, 0.168294F, 0.141869F, -0.154332F, 0.485866F, -0.432586F, 0.652323F,
        -0.645299F}},
      {"type: TRIPLE base: 0.5",
       {-4.031176F, 1.333333F, 1.F, -0.327327F, 0, -0.661436F, 1.287486F, -3.0253F, -1.32F},
       {-0.30666F, 0.071589F, 0.151754F, 0.175207F, -0.154108F, 0.472652F, -0.402186F, 0.55498F,
        -0.534557F}},
      {"type: QUADRUPLE base: 1000 gamma: 0.12 power: 1 lambda_min: 5 iteration: 5000",
       {-1.61616F, 1.333333F, 1.F, -0.327327F, 0, 0.836948F, 1.287486F, -1.180283F, -1.32F},
       {-0.256952F, 0.163084F, 0.134821F, 0.40105F, -0.199698F, 0.397072F, -0.394632F, 0.510652F,
        -0.500682F}}};
  // The plain product's, times the length of its row of w: 1.145644, 3, 0.5.
  const std::vector<float> dw = {-0.045826F, 1.924682F, -0.893602F, -2.88F, -1.74F,
                                 1.74F,      0.875F,    0.2225F,    -0.21F};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    for (const Golden& golden : all) {
      auto net = TestNet::build(margin({3, 3}, 3, golden.fields), caffe::TRAIN);
      ASSERT_TRUE(net.ok()) << net.status().message();
      const std::vector<float> w = {0.5F, -0.25F, 1, 1, 2, 2, -0.3F, 0.4F, 0};
      std::ranges::copy(w, (*net)->param(0).begin());
      auto plan = (*net)->plan(*device, 0);
      ASSERT_TRUE(plan.ok()) << plan.status().message();
      const std::vector<float> x = {1, 2, -0.5F, -2, 0.3F, 0.7F, 0.2F, -1.5F, 1};
      const std::vector<float> dy = {0.3F, -0.2F, 0.5F, 0.1F, 0.4F, -0.6F, -0.7F, 0.2F, 0.25F};
      std::ranges::copy(x, (*plan)->inputs()[0].data);
      std::ranges::copy(std::vector<float>{0, 2, 1}, (*plan)->inputs()[1].data);
      std::ranges::copy(dy, (*plan)->outputs()[0].diff);
      ThreadPool pool(2);
      ASSERT_TRUE((*plan)->run(pool, {}).ok());
      for (size_t i = 0; i < 9; ++i) {
        EXPECT_NEAR((*plan)->outputs()[0].data[i], golden.y[i], 5e-6) << golden.fields << i;
        EXPECT_NEAR((*plan)->input_diffs()[0].data[i], golden.dx[i], 5e-6) << golden.fields << i;
        EXPECT_NEAR((*net)->param_diff(0)[i], dw[i], 5e-6) << golden.fields << i;
      }
    }
  }
}

// Central differences of a sum of the scores by each value of x: without a margin the gradient is a true
// one.
TEST(MarginInnerProduct, GradientForTheFeaturesIsThatOfTheScoresWithoutAMargin) {
  constexpr int kRows = 4, kWidth = 3, kClasses = 3;
  auto net = TestNet::build(margin({kRows, kWidth}, kClasses, "base: 0.5"), caffe::TRAIN);
  ASSERT_TRUE(net.ok()) << net.status().message();
  for (size_t i = 0; i < kWidth * kClasses; ++i) {
    (*net)->param(0)[i] = 0.37F * float(i * i % 7) - 0.9F;
  }
  const auto device = make_ref_device();
  auto plan = (*net)->plan(*device, 0);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  float* x = (*plan)->inputs()[0].data;
  for (int i = 0; i < kRows * kWidth; ++i) x[i] = 0.21F * float(i * i % 11) - 1;
  std::ranges::copy(std::vector<float>{0, 2, 1, 0}, (*plan)->inputs()[1].data);
  const Plan::Blob y = (*plan)->outputs()[0];
  for (int i = 0; i < kRows * kClasses; ++i) y.diff[i] = 0.3F * float(i % 5) - 0.6F;
  ThreadPool pool(1);
  const auto sum = [&] {
    EXPECT_TRUE((*plan)->run(pool, {}).ok());
    double total = 0;
    for (int i = 0; i < kRows * kClasses; ++i) total += double(y.data[i]) * double(y.diff[i]);
    return total;
  };
  sum();
  const float* now = (*plan)->input_diffs()[0].data;
  const std::vector<float> dx(now, now + kRows * kWidth);
  constexpr float kStep = 1 / 256.F;
  for (size_t i = 0; i < dx.size(); ++i) {
    const float at = x[i];
    x[i] = at + kStep;
    const double above = sum();
    x[i] = at - kStep;
    const double below = sum();
    x[i] = at;
    EXPECT_NEAR(dx[i], (above - below) / (2 * kStep), 2e-3) << i;
  }
}

TEST(MarginInnerProduct, LambdaFallsWithTheIterations) {
  const auto cpu = make_cpu_device();
  const auto lambda = [&](int64_t sub_step) {
    RunContext run;
    run.sub_step = sub_step;
    return evaluate(margin({2, 3}, 2, "type: DOUBLE base: 1000 gamma: 0.12 power: 1 lambda_min: 5",
                           "top: 'y' top: 'lambda'"),
                    {}, caffe::TRAIN, *cpu, run)["lambda"][0];
  };
  EXPECT_FLOAT_EQ(lambda(0), 892.8571F);
  EXPECT_FLOAT_EQ(lambda(99), float(1000 / 13.));
  EXPECT_FLOAT_EQ(lambda(5000), 5);
}

TEST(MarginInnerProduct, ARowOfZerosAndALabelThatIsNone) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto y =
        evaluate(margin({2, 3}, 2, "type: QUADRUPLE base: 0"),
                 {{"x", {0, 0, 0, 1, 1, 1}}, {"label", {1, NAN}}}, caffe::TRAIN, *device);
    for (const float v : y.at("y")) EXPECT_TRUE(v == v) << "no number divides by 0";
  }
}

TEST(MarginInnerProduct, Refusals) {
  EXPECT_THAT(refusal(margin({2, 3}, 0, "")), HasSubstr("num_output"));
}

}  // namespace
}  // namespace cafetiere
