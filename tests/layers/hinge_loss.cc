// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string hinge_loss(const std::vector<int64_t>& dims, const std::vector<int64_t>& labels,
                       const std::string& norm) {
  return input("x", dims) + input("label", labels) +
         layer("HingeLoss", "bottom: 'x' bottom: 'label' top: 'y'",
               "hinge_loss_param { norm: " + norm + " }");
}

TEST(HingeLoss, Gradients) {
  for (const char* norm : {"L1", "L2"}) {
    check_layer({.layers = hinge_loss({4, 5}, {4}, norm), .labels = 5});
    check_layer({.layers = hinge_loss({3, 2, 2, 1}, {3, 1}, norm), .labels = 4});
  }
}

TEST(HingeLoss, Values) {
  const Figures inputs = {{"x", {0.5F, 2, -2, 0}}, {"label", {0, 1}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto value = [&](const std::string& norm) {
      return evaluate(hinge_loss({2, 2}, {2}, norm), inputs, caffe::TRAIN, *device)["y"][0];
    };
    EXPECT_FLOAT_EQ(value("L1"), (0.5F + 3 + 0 + 1) / 2);
    EXPECT_FLOAT_EQ(value("L2"), (0.25F + 9 + 0 + 1) / 2);
  }
}

TEST(HingeLoss, Refusals) {
  EXPECT_THAT(refusal(hinge_loss({4, 5}, {3}, "L1")),
              HasSubstr("one label for each of the 4 positions"));
}

}  // namespace
}  // namespace cafetiere
