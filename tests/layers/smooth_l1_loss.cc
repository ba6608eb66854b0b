// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string smooth_l1(const std::vector<int64_t>& shape, int bottoms,
                      const std::string& fields = "") {
  const char* const kNames[] = {"p", "t", "w", "v"};
  std::string inputs, wires;
  for (int i = 0; i < bottoms; ++i) {
    inputs += input(kNames[i], shape);
    wires += std::string("bottom: '") + kNames[i] + "' ";
  }
  // Weights have no gradient.
  const char* const kDown[] = {"", "", "",
                               "propagate_down: true propagate_down: true "
                               "propagate_down: false ",
                               "propagate_down: true propagate_down: true propagate_down: false "
                               "propagate_down: false "};
  return inputs + layer("SmoothL1Loss", wires + kDown[bottoms] + "top: 'y'",
                        "smooth_l1_loss_param { " + fields + " }");
}

TEST(SmoothL1Loss, Gradients) {
  check_layer({smooth_l1({6, 3, 2, 2}, 2)});
  check_layer({smooth_l1({6, 3}, 4, "sigma: 2")});
  check_layer({.layers = smooth_l1({6, 3}, 3), .numeric = false});  // SSD's is not the true one
}

// torch.nn.functional.smooth_l1_loss(p, t, reduction="sum", beta=1 / sigma^2) over 2 rows; with the
// second weight by the formula.
TEST(SmoothL1Loss, ValuesOfTorch) {
  const Figures inputs = {{"p", {0, 2, -1, 0.5}},
                          {"t", {0.5, -1, -1.25, 0.5}},
                          {"w", {1, 1, 2, 0}},
                          {"v", {0.5, 2, 1, 1}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto figures = [&](int bottoms, const std::string& fields = "") {
      return evaluate(smooth_l1({2, 2}, bottoms, fields), inputs, caffe::TRAIN, *device);
    };
    EXPECT_FLOAT_EQ(figures(2)["y"][0], 2.65625F / 2);
    EXPECT_FLOAT_EQ(figures(2, "sigma: 2")["y"][0], 3.375F / 2);
    EXPECT_FLOAT_EQ(figures(3)["y"][0], (0.125F + 2.5F + 0.125F) / 2);
    EXPECT_FLOAT_EQ(figures(4)["y"][0], (0.0625F + 5 + 0.125F) / 2);
  }
}

TEST(SmoothL1Loss, Refusals) {
  EXPECT_THAT(refusal(smooth_l1({2, 2}, 2, "sigma: 0")), HasSubstr("sigma must be above 0"));
  EXPECT_THAT(refusal(input("p", {2, 3}) + input("t", {2, 4}) +
                      layer("SmoothL1Loss", "bottom: 'p' bottom: 't' top: 'y'")),
              HasSubstr("one size"));
}

}  // namespace
}  // namespace cafetiere
