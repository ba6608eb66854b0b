// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string permute(const std::vector<int64_t>& dims, const std::string& order) {
  return input("x", dims) +
         layer("Permute", "bottom: 'x' top: 'y'", "permute_param { " + order + " }");
}

TEST(Permute, Gradients) {
  check_layer({permute({2, 3, 4, 5}, "order: 0 order: 2 order: 3 order: 1")});
  check_layer({permute({2, 3, 4, 5}, "order: 3 order: 1")});
  check_layer({permute({2, 3, 4}, "order: -1 order: 0 order: 1")});
  check_layer({permute({2, 3, 4}, "")});
  check_layer({permute({7}, "order: 0")});
}

TEST(Permute, AfterAConvolution) {
  check_layer({input("x", {2, 2, 5, 4}) +
               layer("Convolution", "name: 'conv' bottom: 'x' top: 'c'",
                     "convolution_param { num_output: 3 kernel_size: 2 }") +
               layer("Permute", "bottom: 'c' top: 'y'",
                     "permute_param { order: 0 order: 2 order: 3 order: 1 }")});
}

TEST(Permute, Values) {
  const Figures inputs = {{"x", {1, 2, 3, 4, 5, 6}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(permute({2, 3}, "order: 1 order: 0"), inputs, caffe::TEST, *device);
    EXPECT_THAT(figures["y"], ElementsAre(1, 4, 2, 5, 3, 6));
  }
}

TEST(Permute, Refusals) {
  EXPECT_THAT(refusal(permute({2, 3}, "order: 1 order: 1")), HasSubstr("names axis 1 twice"));
  EXPECT_THAT(refusal(permute({2, 3}, "order: 2")), HasSubstr("axis 2 is out of range"));
}

}  // namespace
}  // namespace cafetiere
