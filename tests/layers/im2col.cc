// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string im2col(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("Im2col", "bottom: 'x' top: 'y'", "convolution_param { " + fields + " }");
}

TEST(Im2col, Gradients) {
  check_layer({im2col({2, 3, 6, 5}, "kernel_size: 3")});
  check_layer({im2col({2, 3, 6, 5}, "kernel_size: 3 pad: 1 stride: 2")});
  check_layer({im2col({2, 2, 7, 8}, "kernel_size: 2 dilation: 3 pad: 1")});
  check_layer({im2col({2, 3, 6, 5}, "kernel_h: 3 kernel_w: 1 stride_h: 1 stride_w: 2")});
  check_layer({im2col({2, 3, 9}, "kernel_size: 3 stride: 2")});
  check_layer({im2col({2, 2, 4, 3, 5}, "kernel_size: 2 pad: 1 stride: 2")});
  check_layer({im2col({2, 3, 4, 5}, "kernel_size: 3 axis: 2")});
}

TEST(Im2col, Values) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(im2col({1, 1, 2, 3}, "kernel_h: 1 kernel_w: 2"),
                               {{"x", {1, 2, 3, 4, 5, 6}}}, caffe::TEST, *device);
    EXPECT_THAT(figures["y"], ElementsAre(1, 2, 4, 5, 2, 3, 5, 6));
  }
}

// A convolution is an inner product of its patches with its weights.
TEST(Im2col, ThenAnInnerProductIsAConvolution) {
  const std::string windows = "kernel_size: 3 pad: 1 stride: 2 ";
  const std::string patches =
      im2col({2, 3, 5, 4}, windows) +
      layer("Convolution", "name: 'product' bottom: 'y' top: 'z'",
            "convolution_param { num_output: 2 kernel_size: 1 bias_term: false }");
  const std::string whole =
      input("x", {2, 3, 5, 4}) +
      layer("Convolution", "bottom: 'x' top: 'z'",
            "convolution_param { num_output: 2 bias_term: false " + windows + "}");
  std::vector<float> x(120);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i % 17) - 8;
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures actual = evaluate(patches, {{"x", x}}, caffe::TEST, *device);
    Figures expected = evaluate(whole, {{"x", x}}, caffe::TEST, *device);
    expect_close(actual["z"], expected["z"], 1e-5, "z");
  }
}

TEST(Im2col, Refusals) {
  EXPECT_THAT(refusal(im2col({2, 3, 6, 5}, "")), HasSubstr("kernel_size"));
  EXPECT_THAT(refusal(im2col({2, 3, 6, 5}, "kernel_size: 7")), HasSubstr("larger than the padded"));
}

}  // namespace
}  // namespace cafetiere
