// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string bias(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) + layer("Bias", "bottom: 'x' top: 'y'", "bias_param { " + fields + " }");
}
std::string bias_by(const std::vector<int64_t>& dims, const std::vector<int64_t>& by,
                    const std::string& fields) {
  return input("x", dims) + input("s", by) +
         layer("Bias", "bottom: 'x' bottom: 's' top: 'y'", "bias_param { " + fields + " }");
}

TEST(Bias, Learned) {
  check_layer({bias({2, 3, 4, 2}, "")});
  check_layer({bias({2, 3, 4, 2}, "num_axes: 2")});
  check_layer({bias({2, 3, 4, 2}, "axis: 2 num_axes: -1")});
  check_layer({bias({2, 3, 4, 2}, "axis: -1")});
  check_layer({bias({2, 3, 4, 2}, "num_axes: 0")});
  check_layer({.layers = bias({2, 3, 4}, "axis: 0 num_axes: 2"), .batches = {}});
}

TEST(Bias, BySecondBottom) {
  check_layer({.layers = bias_by({2, 3, 4, 2}, {3}, ""), .batches = {}});
  check_layer({.layers = bias_by({2, 3, 4, 2}, {3, 4}, ""), .batches = {}});
  check_layer({.layers = bias_by({2, 3, 4, 2}, {2, 3}, "axis: 0"), .batches = {5, 33}});
  check_layer({.layers = bias_by({4}, {}, ""), .batches = {}});
}

TEST(Bias, InPlaceBetweenConvolutions) {
  const std::string fields = "convolution_param { num_output: 5 kernel_size: 2 }";
  const auto net = [&](const std::string& param) {
    return input("x", {2, 2, 4, 4}) +
           layer("Convolution", "name: 'a' bottom: 'x' top: 'y'", fields) +
           layer("Bias", "bottom: 'y' top: 'y'", "bias_param { " + param + " }") +
           layer("Convolution", "name: 'b' bottom: 'y' top: 'z'", fields);
  };
  check_layer({net("")});
  check_layer({net("num_axes: 3")});
}

TEST(Bias, Refusals) {
  EXPECT_THAT(refusal(bias({2, 3}, "num_axes: 2")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("beyond shape 2 3")));
  EXPECT_THAT(refusal(bias_by({2, 3}, {4}, "")),
              AllOf(HasSubstr("second bottom has shape 4"), HasSubstr("must match 3")));
}

}  // namespace
}  // namespace cafetiere
