#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string conv(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("Convolution", "bottom: 'x' top: 'y'", "convolution_param { " + fields + " }");
}

TEST(Convolution, SquareKernels) {
  check_layer({conv({2, 3, 6, 5}, "num_output: 4 kernel_size: 3")});
  check_layer({conv({2, 3, 6, 5}, "num_output: 4 kernel_size: 3 pad: 1 stride: 2")});
  check_layer({conv({2, 2, 9, 8}, "num_output: 3 kernel_size: 5 pad: 2 stride: 3")});
  check_layer({conv({2, 5, 4, 4}, "num_output: 7 kernel_size: 1")});
  check_layer({conv({2, 3, 5, 5}, "num_output: 2 kernel_size: 1 stride: 2 pad: 1")});
}

TEST(Convolution, NoBias) {
  check_layer({conv({2, 3, 6, 5}, "num_output: 4 kernel_size: 3 bias_term: false")});
}

TEST(Convolution, Groups) {
  check_layer({conv({2, 4, 5, 6}, "num_output: 6 kernel_size: 3 pad: 1 group: 2")});
  check_layer({conv({2, 4, 5, 5}, "num_output: 4 kernel_size: 3 group: 4")});
  check_layer({conv({2, 3, 5, 5}, "num_output: 6 kernel_size: 2 group: 3 stride: 2")});
}

TEST(Convolution, Dilation) {
  check_layer({conv({2, 2, 7, 8}, "num_output: 3 kernel_size: 3 dilation: 2 pad: 2")});
  check_layer(
      {conv({2, 2, 9, 9}, "num_output: 3 kernel_size: 3 dilation: 2 dilation: 3 stride: 2")});
  check_layer({conv({2, 4, 7, 7}, "num_output: 4 kernel_size: 3 dilation: 2 pad: 3 group: 2")});
}

TEST(Convolution, RectangularKernels) {
  check_layer({conv({2, 3, 7, 6},
                    "num_output: 3 kernel_h: 3 kernel_w: 1 stride_h: 1 stride_w: 3 pad_w: 1")});
  check_layer({conv({2, 3, 7, 6}, "num_output: 3 kernel_size: 1 kernel_size: 4 pad: 0 pad: 3")});
}

// The padding is so wide that some windows meet nothing but zeros.
TEST(Convolution, WindowsWithoutPixels) {
  check_layer({conv({2, 2, 3, 3}, "num_output: 2 kernel_size: 2 pad: 3")});
  check_layer({conv({2, 2, 3, 3}, "num_output: 2 kernel_size: 1 pad: 2 stride: 2")});
}

TEST(Convolution, OtherNumbersOfAxes) {
  check_layer({conv({2, 3, 9}, "num_output: 2 kernel_size: 3 stride: 2")});
  check_layer({conv({2, 2, 4, 3, 5}, "num_output: 2 kernel_size: 2 pad: 1 stride: 2")});
  check_layer(
      {.layers = conv({2, 3, 4, 5}, "num_output: 2 kernel_size: 3 axis: 2"), .batches = {5}});
}

// Several chunks of images and of output channels, the last ones short.
TEST(Convolution, ManyChannelsAndImages) {
  const auto check = [](const std::string& layers, int64_t batch) {
    check_layer({.layers = layers, .batches = {batch}, .numeric = false});
  };
  check(conv({3, 50, 4, 3}, "num_output: 70 kernel_size: 3 pad: 1"), 64);
  check(conv({3, 150, 3, 2}, "num_output: 50 kernel_size: 3 pad: 1"), 66);
  check(conv({3, 150, 2, 2}, "num_output: 130 kernel_size: 1"), 130);
  check(conv({3, 20, 8, 8}, "num_output: 50 kernel_size: 5"), 65);
}

TEST(Convolution, SeveralBottomsShareTheWeights) {
  check_layer({input("a", {2, 3, 5, 4}) + input("b", {2, 3, 5, 4}) +
               layer("Convolution", "bottom: 'a' bottom: 'b' top: 'y' top: 'z'",
                     "convolution_param { num_output: 2 kernel_size: 3 }")});
}

TEST(Convolution, LayersThatShareParameters) {
  const std::string fields =
      "param { name: 'w' } param { name: 'b' } convolution_param { num_output: 3 kernel_size: 3 "
      "pad: 1 }";
  check_layer({input("x", {2, 3, 4, 4}) +
               layer("Convolution", "name: 'one' bottom: 'x' top: 'y'", fields) +
               layer("Convolution", "name: 'two' bottom: 'y' top: 'z'", fields)});
}

TEST(Convolution, Refusals) {
  const auto refused = [](const std::string& fields) {
    return refusal(conv({2, 4, 5, 6}, fields));
  };
  EXPECT_THAT(refused("kernel_size: 3"),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("num_output")));
  EXPECT_THAT(refused("num_output: 2"), HasSubstr("kernel_size"));
  EXPECT_THAT(refused("num_output: 2 kernel_size: 3 stride: 0"), HasSubstr("stride"));
  EXPECT_THAT(refused("num_output: 3 kernel_size: 3 group: 2"),
              AllOf(HasSubstr("group 2 must divide"), HasSubstr("3 outputs")));
  EXPECT_THAT(refused("num_output: 2 kernel_size: 9"),
              AllOf(HasSubstr("layer 'L'"), HasSubstr("larger than the padded input")));
  EXPECT_THAT(refused("num_output: 2 kernel_size: 3 kernel_h: 3 kernel_w: 3"),
              HasSubstr("kernel_h"));
  EXPECT_THAT(refused("num_output: 2 kernel_size: 3 pad: 1 pad: 1 pad: 1"),
              HasSubstr("pad is given 3 times for 2 spatial axes"));
}

}  // namespace
}  // namespace cafetiere
