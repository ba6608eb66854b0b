// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string deconv(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("Deconvolution", "bottom: 'x' top: 'y'", "convolution_param { " + fields + " }");
}

TEST(Deconvolution, SquareKernels) {
  check_layer({deconv({2, 3, 4, 5}, "num_output: 4 kernel_size: 3")});
  check_layer({deconv({2, 3, 4, 3}, "num_output: 2 kernel_size: 4 stride: 2 pad: 1")});
  check_layer({deconv({2, 2, 3, 3}, "num_output: 3 kernel_size: 2 stride: 3")});
  check_layer({deconv({2, 5, 3, 3}, "num_output: 7 kernel_size: 1 bias_term: false")});
}

TEST(Deconvolution, GroupsAndDilation) {
  check_layer({deconv({2, 4, 3, 4}, "num_output: 6 kernel_size: 3 stride: 2 pad: 1 group: 2")});
  check_layer({deconv({2, 3, 4, 4}, "num_output: 3 kernel_size: 4 stride: 2 pad: 1 group: 3")});
  check_layer({deconv({2, 2, 4, 3}, "num_output: 3 kernel_size: 3 dilation: 2 pad: 1")});
}

TEST(Deconvolution, OtherNumbersOfAxes) {
  check_layer({deconv({2, 3, 5}, "num_output: 2 kernel_size: 3 stride: 2")});
  check_layer({deconv({2, 2, 2, 3, 2}, "num_output: 2 kernel_size: 2 stride: 2")});
  check_layer(
      {.layers = deconv({2, 3, 4, 5}, "num_output: 2 kernel_size: 3 axis: 2"), .batches = {5}});
}

TEST(Deconvolution, RectangularKernels) {
  check_layer({deconv({2, 2, 3, 4},
                      "num_output: 3 kernel_h: 3 kernel_w: 1 stride_h: 1 stride_w: 2 pad_h: 1")});
}

TEST(Deconvolution, SeveralBottomsShareTheWeights) {
  check_layer({input("a", {2, 3, 3, 4}) + input("b", {2, 3, 3, 4}) +
               layer("Deconvolution", "bottom: 'a' bottom: 'b' top: 'y' top: 'z'",
                     "convolution_param { num_output: 2 kernel_size: 3 }")});
}

// Its output has the size of what a convolution of the same parameters was given.
TEST(Deconvolution, UndoesTheSizesOfAConvolution) {
  const std::string fields = "convolution_param { num_output: 2 kernel_size: 3 stride: 2 pad: 1 }";
  auto net = TestNet::build(input("x", {1, 2, 9, 7}) +
                                layer("Convolution", "name: 'c' bottom: 'x' top: 'c'", fields) +
                                layer("Deconvolution", "name: 'd' bottom: 'c' top: 'd'", fields),
                            caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  auto shapes = (*net)->graph().infer(0);
  ASSERT_TRUE(shapes.ok());
  EXPECT_EQ(shapes->back(), (Shape{1, 2, 9, 7}));
}

// Every input pixel puts its kernel into the output, stride apart.
TEST(Deconvolution, SpreadsPixels) {
  const std::string net = deconv({1, 1, 2}, "num_output: 1 kernel_size: 3 stride: 2");
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    EXPECT_THAT(evaluate(net, {{"x", {2, 4}}}, caffe::TEST, *device)["y"],
                ElementsAre(1.5F, 1.5F, 3.5F, 2.5F, 2.5F));
  }
}

TEST(Deconvolution, Refusals) {
  const auto refused = [](const std::string& fields) {
    return refusal(deconv({2, 4, 3, 3}, fields));
  };
  EXPECT_THAT(refused("kernel_size: 3"),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("num_output")));
  EXPECT_THAT(refused("num_output: 3 kernel_size: 3 group: 2"), HasSubstr("group 2 must divide"));
  EXPECT_THAT(refused("num_output: 2 kernel_size: 1 pad: 2"),
              AllOf(HasSubstr("layer 'L'"), HasSubstr("pad 2 takes all of the output")));
}

}  // namespace
}  // namespace cafetiere
