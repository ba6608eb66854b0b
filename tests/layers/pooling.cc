// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "core/plan/lower.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string pool(const std::vector<int64_t>& dims, const std::string& fields,
                 const std::string& tops = "top: 'y'") {
  return input("x", dims) +
         layer("Pooling", "bottom: 'x' " + tops, "pooling_param { " + fields + " }");
}

/// The values 0, 1, 2 ... of an image.
Figures counting(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = float(i);
  return {{"x", values}};
}

class BothPools : public ::testing::TestWithParam<const char*> {
 protected:
  static void check(const std::vector<int64_t>& dims, const std::string& fields) {
    check_layer({pool(dims, std::string("pool: ") + GetParam() + " " + fields)});
  }
};

TEST_P(BothPools, Windows) {
  check({2, 3, 5, 5}, "kernel_size: 2 stride: 2");
  check({2, 3, 5, 5}, "kernel_size: 3 stride: 2");
  check({2, 3, 4, 5}, "kernel_size: 3");
  check({2, 2, 6, 7}, "kernel_h: 3 kernel_w: 2 stride_h: 1 stride_w: 2");
}

TEST_P(BothPools, StrideBeyondTheKernel) { check({2, 2, 7, 8}, "kernel_size: 2 stride: 3"); }

TEST_P(BothPools, Padding) {
  check({2, 2, 5, 6}, "kernel_size: 3 stride: 2 pad: 1");
  check({2, 2, 5, 6}, "kernel_size: 2 stride: 2 pad: 1");
  check({2, 2, 5, 6}, "kernel_h: 3 kernel_w: 4 pad_h: 1 pad_w: 2 stride: 2");
  check({2, 2, 4, 4}, "kernel_size: 4 stride: 1 pad: 3");
}

TEST_P(BothPools, RoundingDown) {
  check({2, 2, 6, 8}, "kernel_size: 3 stride: 2 round_mode: FLOOR");
}

TEST_P(BothPools, WholeImage) { check({2, 3, 5, 4}, "global_pooling: true"); }

INSTANTIATE_TEST_SUITE_P(Pooling, BothPools, ::testing::Values("MAX", "AVE"));

// Rounding up can make a last window that has no pixel: the smallest number, or an average of 0.
// Caffe writes the gradient of such a maximum beyond the image; here it goes nowhere.
TEST(Pooling, WindowsBeyondTheImage) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    for (const char* kind : {"MAX", "AVE"}) {
      const std::string fields = std::string("kernel_size: 1 stride: 2 pool: ") + kind;
      const LayerCase c{pool({1, 1, 1, 2}, fields)};
      Figures figures = random_figures(c, *device, 0, 1, 1);
      const std::string name(kind);
      EXPECT_EQ(figures["y"][1], name == "MAX" ? -std::numeric_limits<float>::max() : 0);
      EXPECT_NE(figures["x diff"][0], 0);
      EXPECT_EQ(figures["x diff"][1], 0);
    }
  }
}

TEST(Pooling, ManyImages) {
  check_layer({.layers = pool({2, 20, 8, 8}, "kernel_size: 2 stride: 2"),
               .batches = {64},
               .numeric = false});
}

TEST(Pooling, GivesTheChosenIndex) {
  check_layer({pool({2, 3, 4, 5}, "kernel_size: 2 stride: 2", "top: 'y' top: 'mask'")});
  const std::string net = pool({1, 1, 3, 3}, "kernel_size: 2 stride: 2", "top: 'y' top: 'mask'");
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(net, counting(9), caffe::TEST, *device);
    EXPECT_THAT(figures["mask"], ::testing::ElementsAre(4, 5, 7, 8));
  }
}

// Caffe rounds the number of windows up, drops one that would begin in the padding, and counts the
// padding, but not what lies beyond it, in the average's divisor.
TEST(Pooling, CaffesBorderRules) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures up =
        evaluate(pool({1, 1, 3, 3}, "kernel_size: 2 stride: 2"), counting(9), caffe::TEST, *device);
    EXPECT_THAT(up["y"], ::testing::ElementsAre(4, 5, 7, 8));
    Figures average = evaluate(pool({1, 1, 3, 3}, "pool: AVE kernel_size: 2 stride: 2"),
                               counting(9), caffe::TEST, *device);
    EXPECT_THAT(average["y"], ::testing::ElementsAre(2, 3.5, 6.5, 8));
    Figures padded = evaluate(pool({1, 1, 3, 3}, "pool: AVE kernel_size: 2 stride: 2 pad: 1"),
                              counting(9), caffe::TEST, *device);
    EXPECT_THAT(padded["y"], ::testing::ElementsAre(0, 0.75, 2.25, 6));
  }
}

/// Neighbours would have the same index, and each the gradient of both.
TEST(Pooling, NoGradientWhereAFloatCannotTellThePixelsApart) {
  const auto outline = [](int64_t side, bool backward) {
    const auto net = TestNet::build(
        input("x", {1, 1, side, side}) + layer("Scale", "name: 'scale' bottom: 'x' top: 's'") +
            layer("Pooling", "name: 'pool' bottom: 's' top: 'p'",
                  "pooling_param { kernel_size: 2 stride: 2 }") +
            layer("Reduction", "name: 'sum' bottom: 'p' top: 'y' loss_weight: 1"),
        caffe::TRAIN);
    EXPECT_TRUE(net.ok()) << net.status().message();
    const auto device = make_cpu_device();
    return PlanOutline::make((*net)->graph(), *device, {.backward = backward, .outputs = {}})
        .status()
        .message();
  };
  EXPECT_EQ(outline(4096, true), "");
  EXPECT_EQ(outline(4100, false), "");
  EXPECT_THAT(outline(4100, true), HasSubstr("no gradient for channels of 16810000 pixels"));
}

TEST(Pooling, Refusals) {
  const auto refused = [](const std::string& fields) {
    return refusal(pool({2, 4, 5, 6}, fields));
  };
  EXPECT_THAT(refused(""), AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("kernel_size")));
  EXPECT_THAT(refused("kernel_h: 2"), HasSubstr("kernel_w"));
  EXPECT_THAT(refused("kernel_size: 2 stride: 0"), HasSubstr("stride must be above 0"));
  EXPECT_THAT(refused("kernel_size: 2 pad: 2"), HasSubstr("pad must be smaller than the kernel"));
  EXPECT_THAT(refused("kernel_size: 2 pad: 1 pad_h: 1 pad_w: 1"), HasSubstr("pad"));
  EXPECT_THAT(refused("kernel_size: 2 stride_h: 2"), HasSubstr("stride"));
  EXPECT_THAT(refused("kernel_size: 2 pool: STOCHASTIC"), HasSubstr("MAX or AVE"));
  EXPECT_THAT(refused("global_pooling: true kernel_size: 2"), HasSubstr("global_pooling"));
  EXPECT_THAT(refused("kernel_size: 8 round_mode: FLOOR"),
              HasSubstr("larger than the padded input"));
  EXPECT_THAT(refusal(pool({2, 4}, "kernel_size: 2")), HasSubstr("4 axes"));
  EXPECT_THAT(refusal(pool({2, 4, 5, 6}, "pool: AVE kernel_size: 2", "top: 'y' top: 'z'")),
              HasSubstr("only MAX"));
}

}  // namespace
}  // namespace cafetiere
