// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string argmax(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) + layer("ArgMax", "bottom: 'x' top: 'y' propagate_down: false",
                                  "argmax_param { " + fields + " }");
}

TEST(ArgMax, AllForms) {
  check_layer({argmax({3, 4}, "")});
  check_layer({argmax({3, 4, 5}, "top_k: 3 out_max_val: true")});
  check_layer({argmax({3, 4, 5, 2}, "axis: 1 top_k: 2")});
  check_layer({argmax({3, 4, 5, 2}, "axis: -1 top_k: 2 out_max_val: true")});
  check_layer({.layers = argmax({3, 4}, "axis: 0"), .batches = {}});
}

TEST(ArgMax, Values) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto values = [&](const std::string& fields, const std::vector<float>& x) {
      return evaluate(argmax({2, 3}, fields), {{"x", x}}, caffe::TEST, *device)["y"];
    };
    EXPECT_THAT(values("", {1, 5, 3, 9, 7, 8}), ElementsAre(1, 0));
    EXPECT_THAT(values("top_k: 2", {1, 5, 3, 9, 7, 8}), ElementsAre(1, 2, 0, 2));
    EXPECT_THAT(values("top_k: 2 out_max_val: true", {1, 5, 3, 9, 7, 8}),
                ElementsAre(1, 2, 5, 3, 0, 2, 9, 8));
    EXPECT_THAT(values("axis: 0", {1, 5, 3, 9, 7, 3}), ElementsAre(1, 1, 1));
    EXPECT_THAT(values("axis: 1 out_max_val: true", {1, 5, 3, 9, 7, 8}), ElementsAre(5, 9));
    EXPECT_THAT(values("top_k: 2", {5, 1, 5, 4, 4, 4}), ElementsAre(2, 0, 2, 1)) << "ties";
    const float nan = std::numeric_limits<float>::quiet_NaN();
    EXPECT_THAT(values("top_k: 2", {nan, 1, nan, 2, nan, 3}), ElementsAre(1, 2, 2, 0));
  }
}

TEST(ArgMax, KeepsAtLeastThreeAxes) {
  auto net = TestNet::build(argmax({2, 3}, "top_k: 2 out_max_val: true"), caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  EXPECT_EQ((*net)->graph().infer(0).value().back(), (Shape{2, 2, 2}));
}

TEST(ArgMax, Refusals) {
  EXPECT_THAT(refusal(argmax({2, 3}, "top_k: 4")), HasSubstr("between 1 and the 3 values"));
  EXPECT_THAT(refusal(argmax({2, 3}, "top_k: 0")), HasSubstr("between 1 and the 3 values"));
  EXPECT_THAT(refusal(argmax({2, 3}, "axis: 2")), HasSubstr("axis 2 is out of range"));
}

TEST(ArgMax, HasNoGradient) {
  auto net =
      TestNet::build(input("x", {2, 3}) + layer("ArgMax", "bottom: 'x' top: 'y'"), caffe::TRAIN);
  ASSERT_TRUE(net.ok()) << net.status().message();
  const auto ref = make_ref_device();
  const auto plan = (*net)->plan(*ref, 0);
  EXPECT_THAT(plan.status().message(), HasSubstr("has no gradient"));
}

}  // namespace
}  // namespace cafetiere
