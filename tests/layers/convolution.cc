// SPDX-License-Identifier: Apache-2.0
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

/// Checked at the stated batch, at one image and at nine (by images there would be enough of them).
void check_wide(const std::vector<int64_t>& dims, const std::string& fields) {
  check_layer({.layers = conv(dims, fields), .batches = {1, 9}, .numeric = false});
}

// Channels that fill vectors take the lanes, whatever the batch.
TEST(Convolution, WideChannels) {
  check_wide({2, 32, 7, 6}, "num_output: 48 kernel_size: 3 pad: 1");
  check_wide({2, 16, 9, 8}, "num_output: 40 kernel_size: 5 pad: 2 stride: 2");
  check_wide({2, 75, 5, 5}, "num_output: 130 kernel_size: 3");
  check_wide({2, 64, 6, 5}, "num_output: 72 kernel_size: 1");
  check_wide({2, 64, 6, 5}, "num_output: 72 kernel_size: 1 stride: 2 pad: 1");
  // Pixels a multiple of 4 KB apart, and ranges of channels that are no multiple of 256.
  check_wide({2, 1024, 5, 3}, "num_output: 72 kernel_size: 1");
  check_wide({2, 2560, 3, 5}, "num_output: 64 kernel_size: 1 stride: 2");
  check_wide({2, 16, 8, 9}, "num_output: 32 kernel_size: 3 dilation: 2 pad: 3 stride: 3");
  check_wide({2, 24, 3, 3}, "num_output: 16 kernel_size: 2 pad: 3");
  check_wide({2, 32, 5, 6}, "num_output: 48 kernel_size: 3 pad: 1 group: 2");
}

// Tiles of 2 x 2 outputs: whole ones and cut ones, several groups of them, short blocks of lanes.
TEST(Convolution, Winograd) {
  check_wide({2, 40, 8, 9}, "num_output: 72 kernel_size: 3");
  check_wide({2, 64, 6, 6}, "num_output: 40 kernel_size: 3 pad: 2 bias_term: false");
  check_wide({3, 32, 20, 27}, "num_output: 32 kernel_size: 3 pad: 1");
  check_wide({2, 128, 7, 7}, "num_output: 64 kernel_size: 3 pad: 1 group: 2");
  check_wide({1, 160, 13, 12}, "num_output: 32 kernel_size: 3 pad_h: 0 pad_w: 1");
  // Of one image blocks share the points, and rows of tiles are cut between groups.
  check_layer({.layers = conv({1, 200, 15, 14}, "num_output: 64 kernel_size: 3 pad_w: 1"),
               .batches = {1},
               .numeric = false});
}

// Kernels of 5 x 5 as 3 + 2 taps an axis; with more than 128 channels a product is divided.
TEST(Convolution, WinogradOf5x5) {
  check_wide({2, 40, 10, 9}, "num_output: 72 kernel_size: 5");
  check_wide({2, 64, 6, 6}, "num_output: 40 kernel_size: 5 pad: 4 bias_term: false");
  check_wide({3, 32, 20, 27}, "num_output: 32 kernel_size: 5 pad: 2");
  check_wide({2, 96, 13, 14}, "num_output: 64 kernel_size: 5 pad: 2 group: 2");
  check_wide({1, 160, 13, 12}, "num_output: 32 kernel_size: 5 pad_h: 1 pad_w: 2");
}

// Odd channel counts, whose lanes are images: whole tiles and cut ones, several chunks of images.
TEST(Convolution, WinogradOverImages) {
  check_layer({.layers = conv({8, 20, 12, 12}, "num_output: 50 kernel_size: 5"), .numeric = false});
  check_layer(
      {.layers = conv({70, 17, 9, 10}, "num_output: 19 kernel_size: 3 pad: 1"), .numeric = false});
  check_layer(
      {.layers = conv({9, 36, 8, 7}, "num_output: 65 kernel_size: 5 pad: 3"), .numeric = false});
}

// Few input channels, whose weight gradients are dot products over images: a last chunk of images,
// kernels wider than the sums in registers, pixels that see a part of the kernel or nothing.
TEST(Convolution, FewInputChannels) {
  const auto check = [](const std::vector<int64_t>& dims, const std::string& fields) {
    check_layer({.layers = conv(dims, fields), .numeric = false});
  };
  check({32, 1, 10, 9}, "num_output: 20 kernel_size: 5");
  check({37, 3, 9, 8}, "num_output: 7 kernel_size: 3 pad: 3 stride: 2 dilation: 2");
  check({20, 4, 5, 13}, "num_output: 18 kernel_h: 2 kernel_w: 11 pad_h: 0 pad_w: 6");
  check({25, 2, 30, 3}, "num_output: 1 kernel_size: 1 bias_term: false");
}

// Few images leave lanes empty, so that channels take them even where they are odd in number.
TEST(Convolution, FewImages) {
  check_wide({1, 20, 6, 6}, "num_output: 50 kernel_size: 5");
  check_wide({1, 6, 6, 5}, "num_output: 9 kernel_size: 3 pad: 1 group: 3");
}

// Rows that are divided for want of blocks, unevenly; tiles of rows that 196 outputs do not fill.
TEST(Convolution, FewBlocks) {
  check_wide({1, 32, 13, 11}, "num_output: 32 kernel_size: 5 pad: 2");
  check_wide({1, 32, 21, 17}, "num_output: 64 kernel_size: 1");
}

// A kernel of one column: its products replace what is there, those of a deep source then add.
TEST(Convolution, KernelsOfOneColumn) {
  check_wide({2, 32, 14, 13}, "num_output: 48 kernel_h: 3 kernel_w: 1 pad_h: 1 pad_w: 0");
  check_wide({2, 144, 6, 7}, "num_output: 40 kernel_h: 3 kernel_w: 1 stride: 2");
  check_wide({2, 32, 6, 7}, "num_output: 32 kernel_h: 2 kernel_w: 1 pad_h: 2 pad_w: 1");
}

// A narrow source: the elements of a kernel row become its channels.
TEST(Convolution, NarrowSources) {
  check_wide({2, 3, 13, 12}, "num_output: 16 kernel_size: 5 stride: 2 pad: 2");
  check_wide({2, 1, 9, 9}, "num_output: 8 kernel_size: 3 dilation: 2 pad: 1");
  check_wide({2, 15, 6, 6}, "num_output: 24 kernel_h: 2 kernel_w: 3 pad_w: 2");
}

TEST(Convolution, Depthwise) {
  check_wide({2, 40, 6, 5}, "num_output: 40 kernel_size: 3 pad: 1 group: 40");
  check_wide({2, 8, 9, 8}, "num_output: 8 kernel_size: 3 stride: 2 dilation: 2 pad: 2 group: 8");
  check_layer({conv({2, 4, 5, 5}, "num_output: 4 kernel_size: 3 group: 4 bias_term: false")});
}

// Wider than a product, and more rows than a block.
TEST(Convolution, LongRowsAndColumns) {
  check_wide({1, 8, 3, 300}, "num_output: 8 kernel_size: 3 pad: 1");
  check_wide({1, 8, 300, 2}, "num_output: 8 kernel_size: 3 pad: 1");
  check_wide({1, 16, 21, 20}, "num_output: 8 kernel_size: 1");
}

// What follows a convolution works on the layout that it left, whichever that is: 24 channels lie
// side by side, 20 do not when there are images enough.
TEST(Convolution, FollowedByEverything) {
  for (const char* channels : {"24", "20"}) {
    const std::string outputs = std::string("convolution_param { num_output: ") + channels;
    check_layer({.layers = input("x", {2, 8, 7, 6}) +
                           layer("Convolution", "name: 'a' bottom: 'x' top: 'a'",
                                 outputs + " kernel_size: 1 bias_term: false }") +
                           layer("BatchNorm", "name: 'n' bottom: 'a' top: 'n'") +
                           layer("Scale", "name: 's' bottom: 'n' top: 's'",
                                 "scale_param { bias_term: true }") +
                           layer("ReLU", "name: 'r' bottom: 's' top: 'r'") +
                           layer("Convolution", "name: 'b' bottom: 'r' top: 'b'",
                                 outputs + " kernel_size: 3 pad: 1 }") +
                           layer("Concat", "name: 'c' bottom: 'r' bottom: 'b' top: 'c'") +
                           layer("Pooling", "name: 'p' bottom: 'c' top: 'p'",
                                 "pooling_param { pool: AVE kernel_size: 3 stride: 2 }") +
                           layer("Dropout", "name: 'd' bottom: 'p' top: 'd'") +
                           layer("Softmax", "name: 'y' bottom: 'd' top: 'y'"),
                 .batches = {9},
                 .numeric = false});
  }
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
