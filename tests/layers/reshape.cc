// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string reshape(const std::string& fields) {
  return input("x", {2, 3, 4, 2}) +
         layer("Reshape", "bottom: 'x' top: 'y'", "reshape_param { " + fields + " }");
}

Shape top_shape(const std::string& fields) {
  auto net = TestNet::build(reshape(fields), caffe::TRAIN);
  EXPECT_TRUE(net.ok()) << net.status().message();
  if (!net.ok()) return {};
  auto shapes = (*net)->graph().infer(0);
  return (*shapes)[size_t((*net)->graph().find_blob("y"))];
}

TEST(Reshape, Shapes) {
  EXPECT_EQ(top_shape("shape { dim: 0 dim: -1 }"), (Shape{2, 24}));
  EXPECT_EQ(top_shape("shape { dim: 0 dim: 0 dim: -1 }"), (Shape{2, 3, 8}));
  EXPECT_EQ(top_shape("shape { dim: -1 }"), (Shape{48}));
  EXPECT_EQ(top_shape("axis: 1 num_axes: 2 shape { dim: 6 dim: -1 }"), (Shape{2, 6, 2, 2}));
  EXPECT_EQ(top_shape("axis: 1 num_axes: 2 shape { dim: -1 dim: 0 }"), (Shape{2, 3, 4, 2}));
  EXPECT_EQ(top_shape("axis: 1 num_axes: 0 shape { dim: 1 }"), (Shape{2, 1, 3, 4, 2}));
  EXPECT_EQ(top_shape("axis: -1 shape { dim: 1 dim: 1 }"), (Shape{2, 3, 4, 2, 1, 1}));
  EXPECT_EQ(top_shape("axis: -3 num_axes: 2 shape { dim: 8 }"), (Shape{2, 3, 8}));
}

TEST(Reshape, Gradients) {
  check_layer({reshape("shape { dim: 0 dim: -1 }")});
  check_layer({reshape("shape { dim: -1 }")});
  check_layer({reshape("axis: 1 num_axes: 0 shape { dim: 1 }")});
}

TEST(Reshape, BetweenConvolutions) {
  const std::string fields = "convolution_param { num_output: 4 kernel_size: 2 }";
  check_layer({input("x", {2, 3, 5, 4}) +
               layer("Convolution", "name: 'a' bottom: 'x' top: 'a'", fields) +
               layer("Reshape", "bottom: 'a' top: 'b'",
                     "reshape_param { shape { dim: 0 dim: 2 dim: 6 dim: -1 } }") +
               layer("Convolution", "name: 'c' bottom: 'b' top: 'c'", fields)});
}

TEST(Reshape, Refusals) {
  EXPECT_THAT(
      refusal(reshape("shape { dim: 5 dim: -1 }")),
      AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("48 elements are not a multiple of 5")));
  EXPECT_THAT(refusal(reshape("shape { dim: 5 dim: 10 }")), HasSubstr("5 10 (50)"));
  EXPECT_THAT(refusal(reshape("shape { dim: -1 dim: -1 }")), HasSubstr("at most one dim of -1"));
  EXPECT_THAT(refusal(reshape("shape { dim: -2 }")), HasSubstr("below -1"));
  EXPECT_THAT(refusal(reshape("shape { dim: 4294967296 dim: 4294967296 }")),
              HasSubstr("4294967296 4294967296 is too large"));
  EXPECT_THAT(refusal(reshape("axis: 3 shape { dim: 2 dim: 0 }")), HasSubstr("copies axis 4"));
  EXPECT_THAT(refusal(reshape("axis: 5 shape { dim: 1 }")), HasSubstr("axis 5 and num_axes -1"));
  EXPECT_THAT(refusal(reshape("axis: 3 num_axes: 2 shape { dim: 1 }")), HasSubstr("num_axes 2"));
  EXPECT_THAT(refusal(reshape("num_axes: -2 shape { dim: 1 }")), HasSubstr("num_axes -2"));
}

}  // namespace
}  // namespace cafetiere
