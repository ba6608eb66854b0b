// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string reduction(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("Reduction", "bottom: 'x' top: 'y'", "reduction_param { " + fields + " }");
}

TEST(Reduction, Gradients) {
  for (const std::string operation : {"SUM", "ASUM", "SUMSQ", "MEAN"}) {
    const std::string fields = "operation: " + operation + " ";
    check_layer({reduction({2, 3, 4, 5}, fields)});
    check_layer({reduction({2, 3, 4, 5}, fields + "axis: 1 coeff: 0.5")});
    check_layer({reduction({2, 3, 4, 5}, fields + "axis: -1 coeff: -2")});
  }
}

TEST(Reduction, ManyRows) {
  check_layer({.layers = reduction({2, 16, 32, 40}, "axis: 2"), .batches = {3}, .numeric = false});
}

TEST(Reduction, Values) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto values = [&](const std::string& fields) {
      return evaluate(reduction({2, 2}, fields), {{"x", {1, -2, 3, 4}}}, caffe::TEST, *device)["y"];
    };
    EXPECT_THAT(values(""), ElementsAre(6));
    EXPECT_THAT(values("axis: 1 coeff: 2"), ElementsAre(-2, 14));
    EXPECT_THAT(values("axis: 1 operation: ASUM"), ElementsAre(3, 7));
    EXPECT_THAT(values("axis: 1 operation: SUMSQ"), ElementsAre(5, 25));
    EXPECT_THAT(values("axis: 1 operation: MEAN"), ElementsAre(-0.5, 3.5));
  }
}

TEST(Reduction, Refusals) {
  EXPECT_THAT(refusal(reduction({2, 3}, "axis: 2")), HasSubstr("axis 2 is out of range"));
}

}  // namespace
}  // namespace cafetiere
