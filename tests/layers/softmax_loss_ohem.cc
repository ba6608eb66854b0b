// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

std::string ohem(const std::string& tops, const std::string& fields = "") {
  return input("x", {4, 3}) + input("label", {4}) +
         layer("SoftmaxWithLossOHEM", "bottom: 'x' bottom: 'label' " + tops,
               "loss_param { " + fields + " }");
}

TEST(SoftmaxWithLossOHEM, Gradients) {
  check_layer({.layers = ohem("top: 'y'"), .labels = 3});
  check_layer({.layers = ohem("top: 'y'", "normalization: PRE_FIXED pre_fixed_normalizer: 6"),
               .labels = 3});
}

TEST(SoftmaxWithLossOHEM, GivesTheLossOfEachPosition) {
  const Figures inputs = {{"x", {0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0}}, {"label", {0, 1, 2, 1}}};
  const float a = std::log(3.F), b = std::log(2 + std::exp(1.F)) - 1,
              c = std::log(2 + std::exp(2.F));
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto figures = [&](const std::string& fields) {
      return evaluate(
          ohem("top: 'y' top: 'p' top: 'l' propagate_down: false propagate_down: false", fields),
          inputs, caffe::TRAIN, *device);
    };
    Figures all = figures("");
    EXPECT_THAT(all["l"], ElementsAre(FloatNear(a, 1e-6), FloatNear(b, 1e-6), FloatNear(c, 1e-6),
                                      FloatNear(a, 1e-6)));
    EXPECT_NEAR(all["y"][0], (2 * a + b + c) / 4, 1e-6);
    EXPECT_NEAR(all["p"][0], 1.F / 3, 1e-6);
    all = figures("ignore_label: 1 normalization: PRE_FIXED pre_fixed_normalizer: 128");
    EXPECT_THAT(all["l"], ElementsAre(FloatNear(a, 1e-6), 0, FloatNear(c, 1e-6), 0));
    EXPECT_NEAR(all["y"][0], (a + c) / 128, 1e-6);
  }
}

}  // namespace
}  // namespace cafetiere
