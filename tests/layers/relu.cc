// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(ReLU, Slopes) {
  check_layer({input("x", {2, 3, 4, 5}) + layer("ReLU", "bottom: 'x' top: 'y'")});
  check_layer({input("x", {2, 7}) +
               layer("ReLU", "bottom: 'x' top: 'y'", "relu_param { negative_slope: 0.1 }")});
  check_layer({input("x", {2, 7}) +
               layer("ReLU", "bottom: 'x' top: 'y'", "relu_param { negative_slope: -0.5 }")});
}

// Large enough for several blocks.
TEST(ReLU, ManyElements) {
  check_layer({.layers = input("x", {2, 16, 32, 40}) + layer("ReLU", "bottom: 'x' top: 'y'"),
               .batches = {3},
               .numeric = false});
}

TEST(ReLU, InPlaceAfterAnyLayer) {
  const std::string relu = layer("ReLU", "name: 'relu' bottom: 'y' top: 'y'");
  for (const std::string slope : {"0", "0.1", "-0.2"}) {
    const std::string sloped = layer("ReLU", "name: 'relu' bottom: 'y' top: 'y'",
                                     "relu_param { negative_slope: " + slope + " }");
    check_layer({.layers = input("x", {2, 3, 5, 5}) +
                           layer("Convolution", "bottom: 'x' top: 'y'",
                                 "convolution_param { num_output: 4 kernel_size: 3 }") +
                           sloped,
                 .numeric = false});
    check_layer({.layers = input("x", {2, 6}) +
                           layer("InnerProduct", "bottom: 'x' top: 'y'",
                                 "inner_product_param { num_output: 4 }") +
                           sloped,
                 .numeric = false});
  }
  check_layer({input("x", {2, 3, 5, 5}) +
               layer("Pooling", "bottom: 'x' top: 'y'", "pooling_param { kernel_size: 2 }") +
               relu});
}

TEST(ReLU, KeepsTheSignOfValues) {
  const std::string net = input("x", {4}) + layer("ReLU", "bottom: 'x' top: 'y'",
                                                  "relu_param { negative_slope: 0.25 }");
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(net, {{"x", {-4, 0, 1, 2}}}, caffe::TEST, *device);
    EXPECT_THAT(figures["y"], ::testing::ElementsAre(-1, 0, 1, 2));
  }
}

TEST(ReLU, Refusals) {
  EXPECT_THAT(refusal(input("a", {2}) + input("b", {2}) +
                      layer("ReLU", "bottom: 'a' bottom: 'b' top: 'y'")),
              AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("2 bottom(s) but takes exactly 1")));
}

}  // namespace
}  // namespace cafetiere
