// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string prior_box(const std::string& fields, const std::string& type = "PriorBox") {
  return input("x", {2, 3, 2, 3}) + input("data", {2, 3, 60, 90}) +
         layer(type,
               "bottom: 'x' bottom: 'data' top: 'y' propagate_down: false propagate_down: false",
               "prior_box_param { " + fields + " }");
}

std::vector<float> values(const std::string& fields, const std::string& type = "PriorBox") {
  const auto cpu = make_cpu_device();
  return evaluate(prior_box(fields, type), {}, caffe::TEST, *cpu)["y"];
}

/// One box by its center and sides in pixels of an image of 90 x 60.
std::vector<float> box(double x, double y, double w, double h) {
  return {float((x - w / 2) / 90), float((y - h / 2) / 60), float((x + w / 2) / 90),
          float((y + h / 2) / 60)};
}

// By SSD's rules: sizes are cut to whole numbers, ratios that are there already are left out.
TEST(PriorBox, Boxes) {
  const std::vector<float> y = values(
      "min_size: 10.8 max_size: 20.9 aspect_ratio: 2 aspect_ratio: 1 aspect_ratio: 0.5 "
      "variance: 0.1 variance: 0.1 variance: 0.2 variance: 0.2");
  ASSERT_EQ(y.size(), 2U * 6 * 4 * 4);
  const double root = std::sqrt(2.0), side = std::sqrt(10.0 * 20);
  std::vector<float> expected;
  for (const double row : {15, 45}) {
    for (const double column : {15, 45, 75}) {
      for (const auto& [w, h] :
           {std::pair{10.0, 10.0}, {side, side}, {10 * root, 10 / root}, {10 / root, 10 * root}}) {
        const std::vector<float> b = box(column, row, w, h);
        expected.insert(expected.end(), b.begin(), b.end());
      }
    }
  }
  expect_close({y.begin(), y.begin() + 96}, expected, 1e-6, "boxes");
  for (size_t i = 96; i < y.size(); ++i) EXPECT_EQ(y[i], i % 4 < 2 ? 0.1F : 0.2F);
}

TEST(PriorBox, StepOffsetSizeAndClip) {
  const std::vector<float> y = values(
      "min_size: 90 step: 20 offset: 0.25 img_h: 60 img_w: 90 clip: true aspect_ratio: 3 flip: "
      "false");
  ASSERT_EQ(y.size(), 2U * 6 * 2 * 4);
  std::vector<float> first = box(5, 5, 90, 90);
  for (float& edge : first) edge = std::fmin(std::fmax(edge, 0.F), 1.F);
  expect_close({y.begin(), y.begin() + 4}, first, 1e-6, "first");
  EXPECT_EQ(y.back(), 0.1F);
}

TEST(PriorBox, ClusteredTakesSizesAsTheyAre) {
  const std::vector<float> y =
      values("width: 10.5 height: 7.25 width: 3 height: 4 step: 30", "PriorBoxClustered");
  ASSERT_EQ(y.size(), 2U * 6 * 2 * 4);
  std::vector<float> expected = box(15, 15, 10.5, 7.25);
  const std::vector<float> second = box(15, 15, 3, 4);
  expected.insert(expected.end(), second.begin(), second.end());
  expect_close({y.begin(), y.begin() + 8}, expected, 1e-6, "boxes");
}

TEST(PriorBox, Refusals) {
  EXPECT_THAT(refusal(prior_box("")), HasSubstr("give min_size"));
  EXPECT_THAT(refusal(prior_box("min_size: 10 max_size: 9")), HasSubstr("below its max_size"));
  EXPECT_THAT(refusal(prior_box("min_size: 10 variance: 1 variance: 2")),
              HasSubstr("one variance"));
  EXPECT_THAT(refusal(prior_box("min_size: 10 step: 4 step_h: 2")), HasSubstr("give step, or"));
  EXPECT_THAT(refusal(prior_box("width: 10")), HasSubstr("equally often"));
}

}  // namespace
}  // namespace cafetiere
