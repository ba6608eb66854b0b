// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string scale(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("Scale", "bottom: 'x' top: 'y'", "scale_param { " + fields + " }");
}
std::string scale_by(const std::vector<int64_t>& dims, const std::vector<int64_t>& by,
                     const std::string& fields) {
  return input("x", dims) + input("s", by) +
         layer("Scale", "bottom: 'x' bottom: 's' top: 'y'", "scale_param { " + fields + " }");
}

TEST(Scale, Learned) {
  check_layer({scale({2, 3, 4, 2}, "")});
  check_layer({scale({2, 3, 4, 2}, "bias_term: true")});
  check_layer({scale({2, 3, 4, 2}, "num_axes: 2 bias_term: true")});
  check_layer({scale({2, 3, 4, 2}, "axis: 2 num_axes: -1")});
  check_layer({scale({2, 3, 4, 2}, "axis: -1 bias_term: true")});
  check_layer({scale({2, 3, 4, 2}, "num_axes: 0 bias_term: true")});
  check_layer({.layers = scale({2, 3, 4}, "axis: 0 num_axes: 2"), .batches = {}});
}

// The bias writes its gradient before the factors do.
TEST(Scale, SharesItsFactorsWithItsBias) {
  const std::string shared = "param { name: 'q' } param { name: 'q' } ";
  check_layer({input("x", {2, 3, 4, 2}) +
               layer("Scale", "bottom: 'x' top: 'y'", shared + "scale_param { bias_term: true }")});
}

TEST(Scale, BySecondBottom) {
  check_layer({.layers = scale_by({2, 3, 4, 2}, {3}, ""), .batches = {}});
  check_layer({.layers = scale_by({2, 3, 4, 2}, {3, 4}, "bias_term: true"), .batches = {}});
  check_layer({.layers = scale_by({2, 3, 4, 2}, {2, 3}, "axis: 0"), .batches = {5, 33}});
  check_layer({.layers = scale_by({2, 3}, {}, "axis: 0"), .batches = {}});
}

TEST(Scale, AfterAConvolution) {
  const std::string conv =
      input("x", {2, 2, 4, 4}) + layer("Convolution", "name: 'conv' bottom: 'x' top: 'y'",
                                       "convolution_param { num_output: 5 kernel_size: 2 }");
  check_layer({conv + layer("Scale", "bottom: 'y' top: 'z'", "scale_param { bias_term: true }")});
  check_layer({conv + layer("Scale", "bottom: 'y' top: 'y'", "scale_param { num_axes: 3 }")});
}

TEST(Scale, Refusals) {
  EXPECT_THAT(refusal(scale({2, 3}, "num_axes: 2")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("beyond shape 2 3")));
  EXPECT_THAT(refusal(scale_by({2, 3}, {4}, "")),
              AllOf(HasSubstr("second bottom has shape 4"), HasSubstr("must match 3")));
  EXPECT_THAT(refusal(scale_by({2, 3}, {3, 1}, "")), HasSubstr("beyond shape"));
}

}  // namespace
}  // namespace cafetiere
