// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string flip(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) + layer("Flip", "bottom: 'x' top: 'y'", "flip_param { " + fields + " }");
}

TEST(Flip, Gradients) {
  check_layer({flip({4, 3, 5, 2}, "")});
  check_layer({flip({4, 3, 5, 2}, "flip_height: true")});
  check_layer({flip({4, 3, 5, 2}, "flip_width: false flip_height: true")});
}

// numpy.flip of arange(6) as (1, 2, 3).
TEST(Flip, ValuesOfNumPy) {
  const Figures inputs = {{"x", {0, 1, 2, 3, 4, 5}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto values = [&](const std::string& fields) {
      return evaluate(flip({1, 2, 3}, fields), inputs, caffe::TEST, *device)["y"];
    };
    EXPECT_THAT(values(""), ElementsAre(2, 1, 0, 5, 4, 3));
    EXPECT_THAT(values("flip_width: false flip_height: true"), ElementsAre(3, 4, 5, 0, 1, 2));
    EXPECT_THAT(values("flip_height: true"), ElementsAre(5, 4, 3, 2, 1, 0));
    EXPECT_THAT(values("flip_width: false"), ElementsAre(0, 1, 2, 3, 4, 5));
  }
}

TEST(Flip, Refusals) { EXPECT_THAT(refusal(flip({4}, "")), HasSubstr("at least 2 axes")); }

}  // namespace
}  // namespace cafetiere
