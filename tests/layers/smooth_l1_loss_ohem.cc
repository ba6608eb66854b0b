// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ohem(const std::string& bottoms, const std::string& tops, const std::string& fields) {
  return input("p", {3, 2, 1, 2}) + input("t", {3, 2, 1, 2}) + input("w", {3, 2, 1, 2}) +
         layer("SmoothL1LossOHEM", bottoms + tops, "loss_param { " + fields + " }");
}
constexpr char kTwo[] = "bottom: 'p' bottom: 't' ";
constexpr char kThree[] = "bottom: 'p' bottom: 't' bottom: 'w' ";

TEST(SmoothL1LossOHEM, Gradients) {
  for (const std::string mode : {"", "normalization: BATCH_SIZE", "normalization: NONE"}) {
    check_layer({ohem(kTwo, "top: 'y'", mode)});
  }
}

TEST(SmoothL1LossOHEM, GivesTheLossOfEachPosition) {
  const Figures inputs = {{"p", {0, 2, 0.5, 0, 1, 1, 1, 1, 0, 0, 0, 0}},
                          {"t", {0, 0, 0, 0, 1, 1, 1, 1, 4, 0, 0, 0}},
                          {"w", {1, 1, 2, 1, 1, 1, 1, 1, 0.5, 1, 1, 1}}};
  const std::string tops =
      "top: 'y' top: 'l' propagate_down: false propagate_down: false propagate_down: false";
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(ohem(kThree, tops, ""), inputs, caffe::TRAIN, *device);
    EXPECT_THAT(figures["l"], ElementsAre(0.5, 1.5, 0, 0, 1.5, 0));
    EXPECT_FLOAT_EQ(figures["y"][0], 3.5F / 6);
    figures = evaluate(ohem(kThree, tops, "normalization: PRE_FIXED pre_fixed_normalizer: 7"),
                       inputs, caffe::TRAIN, *device);
    EXPECT_FLOAT_EQ(figures["y"][0], 0.5F);
  }
}

TEST(SmoothL1LossOHEM, Refusals) {
  EXPECT_THAT(refusal(input("p", {3, 2}) + input("t", {3, 3}) +
                      layer("SmoothL1LossOHEM", "bottom: 'p' bottom: 't' top: 'y'")),
              HasSubstr("one size"));
}

}  // namespace
}  // namespace cafetiere
