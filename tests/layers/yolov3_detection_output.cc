// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

std::string yolo(const std::string& fields) {
  return input("a", {1, 14, 2, 2}) + input("b", {1, 14, 1, 2}) +
         layer(
             "Yolov3DetectionOutput",
             "bottom: 'a' bottom: 'b' top: 'y' propagate_down: false propagate_down: false",
             "yolov3_detection_output_param { num_classes: 2 num_box: 2 biases: [8, 16, 4, 4, 20, "
             "10, 30, 30] mask: [2, 3, 0, 1] anchors_scale: [16, 32] " +
                 fields + " }");
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// Value `v` (x, y, w, h, object, classes) of a box at a pixel of an input with `pixels`.
size_t place(int box, int v, int pixel, int pixels) {
  return size_t((box * 7 + v) * pixels + pixel);
}

Figures nothing() { return {{"a", std::vector<float>(56, -9)}, {"b", std::vector<float>(28, -9)}}; }

TEST(Yolov3DetectionOutput, DecodesAndSorts) {
  Figures inputs = nothing();
  const auto put = [](std::vector<float>& to, int box, int pixel, int pixels,
                      const std::vector<float>& values) {
    for (int v = 0; v < int(values.size()); ++v)
      to[place(box, v, pixel, pixels)] = values[size_t(v)];
  };
  put(inputs["a"], 1, 3, 4, {0.5F, -0.5F, 0.1F, -0.2F, 2, -9, 1});  // mask 3: 30 x 30
  put(inputs["b"], 0, 0, 2, {-2, 2, 0.3F, 0.4F, 3, 2, -9});         // mask 0: 8 x 16
  const auto cpu = make_cpu_device();
  const std::vector<float> y =
      evaluate(yolo("confidence_threshold: 0.3"), inputs, caffe::TEST, *cpu)["y"];
  ASSERT_EQ(y.size(), (4U + 2) * 2 * 2 * 7);
  const auto row = [](int label, double score, double cx, double cy, double w, double h) {
    return std::vector<float>{0,
                              float(label),
                              float(score),
                              float(cx - w / 2),
                              float(cy - h / 2),
                              float(cx + w / 2),
                              float(cy + h / 2)};
  };
  expect_close({y.begin(), y.begin() + 7},
               row(1, sigmoid(3) * sigmoid(2), sigmoid(-2) / 2, sigmoid(2),
                   std::exp(0.3) * 8 / (2 * 32), std::exp(0.4) * 16 / 32),
               1e-5, "of the second scale");
  expect_close({y.begin() + 7, y.begin() + 14},
               row(2, sigmoid(2) * sigmoid(1), (1 + sigmoid(0.5)) / 2, (1 + sigmoid(-0.5)) / 2,
                   std::exp(0.1) * 30 / (2 * 16), std::exp(-0.2) * 30 / (2 * 16)),
               1e-5, "of the first scale");
  EXPECT_THAT(std::vector<float>(y.begin() + 14, y.end()), Each(-1));
}

// Two classes of one box overlap entirely: the classes are not kept apart.
TEST(Yolov3DetectionOutput, DropsAcrossClasses) {
  Figures inputs = nothing();
  for (int v = 0; v < 7; ++v) inputs["a"][place(0, v, 0, 4)] = v < 4 ? 0.F : 2.F;
  const auto cpu = make_cpu_device();
  const std::vector<float> y = evaluate(yolo(""), inputs, caffe::TEST, *cpu)["y"];
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[8], -1);
}

TEST(Yolov3DetectionOutput, NothingFoundIsARowOfMinusOne) {
  const auto cpu = make_cpu_device();
  EXPECT_THAT(evaluate(yolo(""), nothing(), caffe::TEST, *cpu)["y"], Each(-1));
}

TEST(Yolov3DetectionOutput, Refusals) {
  EXPECT_THAT(refusal(yolo("gaussian_box: true")), HasSubstr("gaussian_box"));
  EXPECT_THAT(refusal(yolo("mask: 9 mask: 0")), HasSubstr("mask 9 names no pair"));
  EXPECT_THAT(refusal(yolo("mask_group_num: 4")), HasSubstr("groups of 2 masks"));
  EXPECT_THAT(refusal(input("a", {2, 14, 2, 2}) +
                      layer("Yolov3DetectionOutput", "bottom: 'a' top: 'y'",
                            "yolov3_detection_output_param { num_classes: 2 num_box: 2 biases: [8, "
                            "16, 4, 4] mask: [0, 1] mask_group_num: 1 anchors_scale: 16 }")),
              HasSubstr("of one image"));
}

}  // namespace
}  // namespace cafetiere
