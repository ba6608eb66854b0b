// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string group_norm(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("GroupNorm", "bottom: 'x' top: 'y'", "group_norm_param { " + fields + " }");
}

TEST(GroupNorm, Gradients) {
  check_layer({group_norm({2, 6, 3, 2}, "group: 2")});
  check_layer({group_norm({3, 4, 3}, "group: 1 eps: 0.1")});
  check_layer({group_norm({2, 3, 2, 3}, "group: 3")});
  check_layer({group_norm({2, 8}, "group: 2 scale_bias: false")});
}

// The features of a convolution come in an order of the device's own.
TEST(GroupNorm, AfterAConvolution) {
  check_layer(
      {.layers = input("x", {2, 3, 5, 4}) +
                 layer("Convolution", "name: 'c' bottom: 'x' top: 'c'",
                       "convolution_param { num_output: 6 kernel_size: 3 }") +
                 layer("GroupNorm", "bottom: 'c' top: 'y'", "group_norm_param { group: 3 }"),
       .numeric = false});
}

TEST(GroupNorm, Figures) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const Figures y = evaluate(group_norm({1, 4, 1, 2}, "group: 2 eps: 0 scale_bias: false"),
                               {{"x", {1, 1, 3, 3, -5, 5, 5, -5}}}, caffe::TEST, *device);
    EXPECT_THAT(y.at("y"), ElementsAre(-1, -1, 1, 1, -1, 1, 1, -1));
  }
}

TEST(GroupNorm, Refusals) {
  EXPECT_THAT(refusal(group_norm({2, 6, 3}, "group: 4")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("group 4 must divide")));
  EXPECT_THAT(refusal(group_norm({6}, "group: 2")), HasSubstr("at least 2 axes"));
}

}  // namespace
}  // namespace cafetiere
