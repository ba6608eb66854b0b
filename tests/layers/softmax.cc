// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string softmax(const std::vector<int64_t>& dims, const std::string& fields = "") {
  return input("x", dims) +
         layer("Softmax", "bottom: 'x' top: 'y'", "softmax_param { " + fields + " }");
}

TEST(Softmax, Axes) {
  check_layer({softmax({3, 10})});
  check_layer({softmax({2, 4, 3, 2})});
  check_layer({softmax({2, 4, 5}, "axis: 2")});
  check_layer({softmax({2, 4, 5}, "axis: -2")});
  check_layer({.layers = softmax({4, 3}, "axis: 0"), .batches = {}});
}

// Rows and planes that take several blocks, with a rest.
TEST(Softmax, ManyClassesAndPlanes) {
  check_layer({.layers = softmax({70, 1003}), .batches = {}, .numeric = false});
  check_layer({.layers = softmax({3, 21, 37, 41}), .batches = {}, .numeric = false});
}

TEST(Softmax, LargeScoresDoNotOverflow) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(softmax({1, 3}), {{"x", {1000, 1000, -1000}}}, caffe::TEST, *device);
    EXPECT_THAT(figures["y"], ::testing::ElementsAre(0.5, 0.5, 0));
  }
}

TEST(Softmax, Refusals) {
  EXPECT_THAT(refusal(softmax({3, 4}, "axis: 2")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("axis 2 is out of range [-2, 1]")));
}

}  // namespace
}  // namespace cafetiere
