// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string batch_norm(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("BatchNorm", "bottom: 'x' top: 'y'", "batch_norm_param { " + fields + " }");
}

TEST(BatchNorm, BatchStatistics) {
  check_layer({batch_norm({3, 4, 3, 2}, "")});
  check_layer({batch_norm({4, 5}, "eps: 0.1")});
  check_layer({batch_norm({3, 2, 4}, "moving_average_fraction: 0.9")});
}

TEST(BatchNorm, RunningStatistics) {
  check_layer({batch_norm({3, 4, 3, 2}, "use_global_stats: true")});
  check_layer({.layers = batch_norm({3, 4, 3, 2}, ""), .phase = caffe::TEST});
  check_layer(
      {.layers = batch_norm({3, 4, 3, 2}, "use_global_stats: false"), .phase = caffe::TEST});
}

TEST(BatchNorm, BetweenConvolutionScaleAndReLU) {
  check_layer(
      {.layers =
           input("x", {4, 2, 5, 5}) +
           layer("Convolution", "name: 'conv' bottom: 'x' top: 'y'",
                 "convolution_param { num_output: 6 kernel_size: 3 bias_term: false }") +
           layer("BatchNorm", "name: 'bn' bottom: 'y' top: 'y'") +
           layer("Scale", "name: 'scale' bottom: 'y' top: 'y'", "scale_param { bias_term: true }") +
           layer("ReLU", "name: 'relu' bottom: 'y' top: 'y'"),
       .numeric = false});
}

// The scale and the shift of the layer behind it are applied with it.
TEST(BatchNorm, AppliesTheScaleBehindIt) {
  const auto scaled = [](const std::string& norm, const std::string& scale) {
    return input("x", {3, 4, 3, 2}) +
           layer("BatchNorm", "name: 'bn' bottom: 'x' top: 'n' " + norm) +
           layer("Scale", "name: 'scale' bottom: 'n' top: 'y' " + scale);
  };
  for (const std::string norm : {"", "batch_norm_param { use_global_stats: true }"}) {
    for (const std::string scale :
         {"", "scale_param { bias_term: true }",
          "param { lr_mult: 0 } param { lr_mult: 1 } scale_param { bias_term: true }"}) {
      check_layer({scaled(norm, scale)});
    }
  }
  check_layer({.layers = scaled("", "scale_param { bias_term: true }"), .phase = caffe::TEST});
}

// Sums of products are of values around the mean: those of the values themselves would leave nothing of
// the gradients of channels far from zero.
TEST(BatchNorm, GradientsFarFromZero) {
  for (const std::vector<int64_t>& dims : {std::vector<int64_t>{64, 3}, {4, 3, 4, 4}}) {
    const std::string net =
        input("x", dims) + layer("BatchNorm", "name: 'bn' bottom: 'x' top: 'n'") +
        layer("Scale", "name: 'S' bottom: 'n' top: 'm'", "scale_param { bias_term: true }") +
        layer("Power", "bottom: 'm' top: 'y'", "power_param { power: 3 }") +
        layer("Reduction", "name: 'R' bottom: 'y' top: 'sum' loss_weight: 1");
    std::vector<float> near(192), far(192);
    for (size_t i = 0; i < near.size(); ++i) {
      near[i] = float(i * 37 % 64) / 64 - 0.5F;
      far[i] = near[i] + 512;  // without rounding
    }
    for (const auto& device : {make_ref_device(), make_cpu_device()}) {
      Figures wanted = evaluate(net, {{"x", near}}, caffe::TRAIN, *device);
      Figures got = evaluate(net, {{"x", far}}, caffe::TRAIN, *device);
      for (const char* figure : {"S[0] diff", "S[1] diff", "x diff"}) {
        expect_close(got[figure], wanted[figure], 1e-4, figure);
      }
    }
  }
}

// What the solver gets: mean, unbiased variance and 1; a second pass folds them as Caffe's own
// running average does.
TEST(BatchNorm, HandsItsStatisticsToTheSolver) {
  const LayerCase c{batch_norm({4, 1}, "moving_average_fraction: 0.5")};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures once = evaluate(c.layers, {{"x", {1, 2, 3, 6}}}, caffe::TRAIN, *device);
    EXPECT_FLOAT_EQ(once["L[0] diff"][0], 3);
    EXPECT_FLOAT_EQ(once["L[1] diff"][0], 14.F / 3);
    EXPECT_FLOAT_EQ(once["L[2] diff"][0], 1);
    Figures twice = random_figures(c, *device, 0, 1, 2);
    EXPECT_FLOAT_EQ(twice["L[2] diff"][0], 1.5F);
  }
}

// With use_global_stats nothing is observed, so nothing may fade either.
TEST(BatchNorm, FixedStatisticsKeepTheirValue) {
  auto net = TestNet::build(batch_norm({4, 2}, "use_global_stats: true"), caffe::TRAIN);
  ASSERT_TRUE(net.ok());
  for (const Param& p : (*net)->graph().params()) EXPECT_EQ(p.fraction, 1);
}

// NVIDIA's and Intel's, with scale and shift in one layer.
TEST(BatchNorm, WithScaleAndShift) {
  for (const std::string fields : {"scale_bias: true", "use_weight_bias: true",
                                   "scale_filler { value: 2 } bias_filler { value: 1 }"}) {
    check_layer({batch_norm({3, 4, 3, 2}, fields)});
    check_layer({.layers = batch_norm({3, 4, 3, 2}, fields), .phase = caffe::TEST});
  }
  check_layer({.layers = input("x", {4, 2, 5, 5}) +
                         layer("Convolution", "name: 'conv' bottom: 'x' top: 'y'",
                               "convolution_param { num_output: 6 kernel_size: 3 }") +
                         layer("BatchNorm", "name: 'bn' bottom: 'y' top: 'y'",
                               "batch_norm_param { scale_bias: true }"),
               .phase = caffe::TEST,
               .numeric = false});
}

// It computes what BatchNorm and Scale compute.
TEST(BatchNorm, WithScaleAndShiftIsBatchNormAndScale) {
  const std::string one = batch_norm({3, 4, 3, 2}, "scale_bias: true");
  const std::string two =
      input("x", {3, 4, 3, 2}) + layer("BatchNorm", "bottom: 'x' top: 'n'") +
      layer("Scale", "name: 'S' bottom: 'n' top: 'y'", "scale_param { bias_term: true }");
  std::vector<float> x(72);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i * 31 % 72) / 10;
  for (const caffe::Phase phase : {caffe::TRAIN, caffe::TEST}) {
    const auto cpu = make_cpu_device();
    expect_close(evaluate(one, {{"x", x}}, phase, *cpu)["y"],
                 evaluate(two, {{"x", x}}, phase, *cpu)["y"], 1e-6, "y");
  }
}

// PSPNet's: the stored statistics are used and go on to be gathered.
TEST(BatchNorm, GathersWhileItUsesWhatIsStored) {
  const std::string net = batch_norm({4, 1}, "use_global_stats: true update_global_stats: true");
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(net, {{"x", {1, 2, 3, 6}}}, caffe::TRAIN, *device);
    EXPECT_FLOAT_EQ(figures["L[0] diff"][0], 3);
    EXPECT_NEAR(figures["y"][0], (1 - 1) / std::sqrt(1 + 1e-5), 1e-6);
  }
}

// As in Caffe, whose layers update them one after another; one with use_global_stats has no part.
TEST(BatchNorm, LayersThatShareStatisticsFoldThemInTurn) {
  const std::string shared = " param { name: 'm' } param { name: 'v' } param { name: 'n' }";
  const auto norm = [&](const std::string& name, const std::string& bottom,
                        const std::string& fields) {
    return layer("BatchNorm", "name: '" + name + "' bottom: '" + bottom + "' top: '" + name + "'",
                 "batch_norm_param { moving_average_fraction: 0.5 " + fields + " }" + shared);
  };
  for (const bool fixed_first : {false, true}) {
    const std::string net =
        input("x", {4, 1}) +
        layer("Input", "name: 'z' top: 'z'", "input_param { shape { dim: 4 dim: 1 } }") +
        (fixed_first ? norm("fixed", "x", "use_global_stats: true") : norm("first", "x", "")) +
        norm("second", "z", "");
    auto built = TestNet::build(net, caffe::TRAIN);
    ASSERT_TRUE(built.ok()) << built.status().message();
    EXPECT_EQ((*built)->graph().params()[0].fraction, fixed_first ? 0.5F : 0.25F);
    const std::string owner = fixed_first ? "fixed" : "first";
    for (const auto& device : {make_ref_device(), make_cpu_device()}) {
      Figures got =
          evaluate(net, {{"x", {1, 2, 3, 6}}, {"z", {5, 5, 7, 7}}}, caffe::TRAIN, *device);
      EXPECT_FLOAT_EQ(got[owner + "[0] diff"][0], fixed_first ? 6 : 0.5F * 3 + 6);
      EXPECT_FLOAT_EQ(got[owner + "[2] diff"][0], fixed_first ? 1 : 1.5F);
    }
  }
}

TEST(BatchNorm, Refusals) {
  EXPECT_THAT(refusal(batch_norm({5}, "")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("at least 2 axes")));
  EXPECT_THAT(
      refusal(input("x", {2, 3}) + layer("BatchNorm", "bottom: 'x' top: 'y' param { lr_mult: 1 }")),
      HasSubstr("set lr_mult: 0"));
}

}  // namespace
}  // namespace cafetiere
