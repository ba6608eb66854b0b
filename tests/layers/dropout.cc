// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string dropout(float ratio) {
  return input("x", {4, 50}) +
         layer("Dropout", "bottom: 'x' top: 'y'",
               "dropout_param { dropout_ratio: " + std::to_string(ratio) + " }");
}

TEST(Dropout, Gradients) {
  check_layer({dropout(0.5F)});
  check_layer({dropout(0)});
  check_layer({.layers = dropout(0.3F), .phase = caffe::TEST});
  check_layer({input("x", {2, 3, 5, 4}) + layer("Dropout", "bottom: 'x' top: 'y'")});
}

// The mask belongs to rows and elements, not to the layout in which a device keeps them.
TEST(Dropout, AfterAConvolution) {
  check_layer({input("x", {2, 2, 4, 4}) +
               layer("Convolution", "name: 'conv' bottom: 'x' top: 'y'",
                     "convolution_param { num_output: 5 kernel_size: 2 }") +
               layer("Dropout", "bottom: 'y' top: 'y'")});
}

TEST(Dropout, KeepsAboutOneMinusRatioAndScalesIt) {
  const std::string net = input("x", {100, 100}) + layer("Dropout", "bottom: 'x' top: 'y'",
                                                         "dropout_param { dropout_ratio: 0.2 }");
  const auto cpu = make_cpu_device();
  Figures figures = evaluate(net, {{"x", std::vector<float>(10000, 1)}}, caffe::TRAIN, *cpu);
  const int64_t kept = 10000 - std::ranges::count(figures["y"], 0.F);
  EXPECT_NEAR(double(kept), 8000, 160);
  EXPECT_EQ(std::ranges::count(figures["y"], 1.25F), kept);
}

// The same rows as one batch or as two give the same values; another step or layer does not.
TEST(Dropout, TheMaskFollowsTheRow) {
  const auto cpu = make_cpu_device();
  const auto mask = [&](int rows, const RunContext& run, const std::string& name) {
    const std::string net =
        input("x", {rows, 10}) + layer("Dropout", "name: '" + name + "' bottom: 'x' top: 'y'");
    return evaluate(net, {{"x", std::vector<float>(size_t(rows) * 10, 1)}}, caffe::TRAIN, *cpu,
                    run)["y"];
  };
  const std::vector<float> whole = mask(6, {}, "L");
  std::vector<float> halves = mask(3, {}, "L");
  const std::vector<float> second = mask(3, {.first_sample = 3}, "L");
  halves.insert(halves.end(), second.begin(), second.end());
  EXPECT_EQ(halves, whole);
  EXPECT_NE(mask(6, {.sub_step = 1}, "L"), whole);
  EXPECT_NE(mask(6, {.seed = 1}, "L"), whole);
  EXPECT_NE(mask(6, {}, "M"), whole);
}

// Fast R-CNN's: training does not scale, tests do; SegNet's: tests drop.
TEST(Dropout, OfForks) {
  const auto net = [](const std::string& fields) {
    return input("x", {100, 100}) + layer("Dropout", "bottom: 'x' top: 'y'",
                                          "dropout_param { dropout_ratio: 0.25 " + fields + " }");
  };
  for (const std::string fields : {"scale_train: false", "sample_weights_test: true"}) {
    check_layer({net(fields)});
    check_layer({.layers = net(fields), .phase = caffe::TEST});
  }
  const auto cpu = make_cpu_device();
  const auto values = [&](const std::string& fields, caffe::Phase phase) {
    return evaluate(net(fields), {{"x", std::vector<float>(10000, 1)}}, phase, *cpu)["y"];
  };
  const std::vector<float> unscaled = values("scale_train: false", caffe::TRAIN);
  EXPECT_NEAR(double(std::ranges::count(unscaled, 1.F)), 7500, 160);
  EXPECT_EQ(std::ranges::count(unscaled, 1.F) + std::ranges::count(unscaled, 0.F), 10000);
  EXPECT_EQ(std::ranges::count(values("scale_train: false", caffe::TEST), 0.75F), 10000);
  EXPECT_EQ(values("sample_weights_test: true", caffe::TEST), values("", caffe::TRAIN));
}

TEST(Dropout, Refusals) {
  EXPECT_THAT(refusal(dropout(1)), AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("[0, 1)")));
  EXPECT_THAT(refusal(dropout(-0.5F)), HasSubstr("dropout_ratio must be in [0, 1)"));
}

}  // namespace
}  // namespace cafetiere
