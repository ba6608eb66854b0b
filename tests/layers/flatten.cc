// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string flatten(const std::string& fields) {
  return input("x", {2, 3, 4, 2}) +
         layer("Flatten", "bottom: 'x' top: 'y'", "flatten_param { " + fields + " }");
}

TEST(Flatten, Axes) {
  check_layer({flatten("")});
  check_layer({flatten("axis: 1 end_axis: 2")});
  check_layer({flatten("axis: -2")});
  check_layer({flatten("axis: 0 end_axis: 1")});
}

// Bytes may have to move after all: the neighbours want other orders.
TEST(Flatten, BetweenConvolutionAndInnerProduct) {
  check_layer({input("x", {2, 3, 5, 4}) +
               layer("Convolution", "name: 'c' bottom: 'x' top: 'c'",
                     "convolution_param { num_output: 4 kernel_size: 2 }") +
               layer("Flatten", "bottom: 'c' top: 'f'") +
               layer("InnerProduct", "name: 'ip' bottom: 'f' top: 'y'",
                     "inner_product_param { num_output: 3 }")});
}

TEST(Flatten, Refusals) {
  EXPECT_THAT(
      refusal(flatten("axis: 2 end_axis: 1")),
      AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("end_axis must not come before axis")));
  EXPECT_THAT(refusal(flatten("axis: 4")), HasSubstr("axis 4 is out of range"));
}

}  // namespace
}  // namespace cafetiere
