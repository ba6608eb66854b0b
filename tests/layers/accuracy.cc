// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string accuracy(const std::vector<int64_t>& dims, const std::vector<int64_t>& labels,
                     const std::string& fields = "", const std::string& tops = "top: 'y'") {
  return input("x", dims) + input("label", labels) +
         layer("Accuracy", "bottom: 'x' bottom: 'label' " + tops,
               "accuracy_param { " + fields + " }");
}

TEST(Accuracy, DevicesAgree) {
  const auto check = [](const std::string& layers) {
    check_layer({.layers = layers, .labels = 5, .numeric = false});
  };
  check(accuracy({4, 5}, {4}));
  check(accuracy({2, 5, 3, 2}, {2, 1, 3, 2}, "top_k: 2", "top: 'y' top: 'z'"));
  check(accuracy({2, 3, 5}, {2, 3}, "axis: 2 ignore_label: 1"));
}

TEST(Accuracy, Values) {
  const Figures in{{"x", {.9F, .1F, 0, .2F, .5F, .3F, .4F, .4F, .2F}}, {"label", {0, 2, 0}}};
  const auto ref = make_ref_device();
  const auto value = [&](const std::string& fields) {
    return evaluate(accuracy({3, 3}, {3}, fields, "top: 'y' top: 'z'"), in, caffe::TEST, *ref);
  };
  EXPECT_FLOAT_EQ(value("")["y"][0], 1.F / 3) << "a tie counts against the label";
  EXPECT_FLOAT_EQ(value("top_k: 2")["y"][0], 1);
  EXPECT_FLOAT_EQ(value("ignore_label: 2")["y"][0], 0.5F);
  EXPECT_THAT(value("")["z"], ::testing::ElementsAre(0.5, 0, 0));
}

TEST(Accuracy, Refusals) {
  EXPECT_THAT(
      refusal(accuracy({4, 5}, {3})),
      AllOf(HasSubstr("net:3: layer 'L'"), HasSubstr("one label for each of the 4 positions")));
  EXPECT_THAT(refusal(accuracy({4, 5}, {4}, "top_k: 6")),
              HasSubstr("top_k 6 must be between 1 and"));
}

}  // namespace
}  // namespace cafetiere
