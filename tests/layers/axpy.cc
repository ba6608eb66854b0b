// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string axpy(const std::vector<int64_t>& a, const std::vector<int64_t>& x,
                 const std::vector<int64_t>& b) {
  return input("a", a) + input("x", x) + input("b", b) +
         layer("Axpy", "bottom: 'a' bottom: 'x' bottom: 'b' top: 'y'");
}

TEST(Axpy, Gradients) {
  check_layer({axpy({4, 3, 1, 1}, {4, 3, 5, 2}, {4, 3, 5, 2})});
  check_layer({axpy({4, 17}, {4, 17, 3, 3}, {4, 17, 3, 3})});
}

TEST(Axpy, Values) {
  const Figures inputs = {{"a", {2, -1}}, {"x", {1, 2, 3, 4}}, {"b", {10, 20, 30, 40}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    EXPECT_THAT(
        evaluate(axpy({1, 2}, {1, 2, 1, 2}, {1, 2, 1, 2}), inputs, caffe::TEST, *device)["y"],
        ElementsAre(12, 24, 27, 36));
  }
}

TEST(Axpy, Refusals) {
  EXPECT_THAT(refusal(axpy({2, 4}, {2, 3, 5, 5}, {2, 3, 5, 5})),
              HasSubstr("factor for each image and channel"));
  EXPECT_THAT(refusal(axpy({2, 3}, {2, 3, 5, 5}, {2, 3, 5, 4})), HasSubstr("of one shape"));
}

}  // namespace
}  // namespace cafetiere
