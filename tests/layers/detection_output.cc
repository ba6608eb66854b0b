// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/layers/boxes.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string detection(int images, int priors, int kinds, const std::string& fields) {
  const int64_t count = priors;
  return input("loc", {images, count * kinds * 4}) + input("conf", {images, count * 2}) +
         input("prior", {1, 2, count * 4}) +
         layer("DetectionOutput",
               "bottom: 'loc' bottom: 'conf' bottom: 'prior' top: 'y' propagate_down: false "
               "propagate_down: false propagate_down: false",
               "detection_output_param { num_classes: 2 " + fields + " }");
}

std::vector<float> detect(const std::string& net, const Figures& inputs) {
  const auto cpu = make_cpu_device();
  return evaluate(net, inputs, caffe::TEST, *cpu)["y"];
}

// Priors side by side, of which the second overlaps the first by a third; variances of 0.5.
Figures three() {
  return {{"prior", {0,    0,    0.4F, 0.4F, 0.2F, 0,    0.6F, 0.4F, 0.6F, 0.6F, 1,    1,
                     0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F, 0.5F}},
          {"loc", std::vector<float>(12, 0)},
          {"conf", {0.2F, 0.8F, 0.1F, 0.9F, 0.4F, 0.6F}}};
}

TEST(DetectionOutput, KeepsTheBestBoxes) {
  const auto rows = [&](const std::string& fields) {
    return detect(detection(1, 3, 1, "keep_top_k: 3 " + fields), three());
  };
  EXPECT_THAT(rows("nms_param { nms_threshold: 0.5 }"),
              ElementsAre(0, 1, 0.9F, 0.2F, 0, 0.6F, 0.4F, 0, 1, 0.8F, 0, 0, 0.4F, 0.4F, 0, 1, 0.6F,
                          0.6F, 0.6F, 1, 1));
  EXPECT_THAT(rows("nms_param { nms_threshold: 0.3 } confidence_threshold: 0.6"),
              ElementsAre(0, 1, 0.9F, 0.2F, 0, 0.6F, 0.4F, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                          -1, -1, -1, -1))
      << "0.6 is not above the threshold, and the first overlaps the second";
  EXPECT_THAT(rows("nms_param { nms_threshold: 1 top_k: 1 }")[2], 0.9F);
  EXPECT_THAT(detect(detection(1, 3, 1, "keep_top_k: 1 nms_param { nms_threshold: 1 }"), three()),
              ElementsAre(0, 1, 0.9F, 0.2F, 0, 0.6F, 0.4F));
  EXPECT_THAT(rows("confidence_threshold: 0.95"),
              ElementsAre(0, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,
                          -1, -1));
}

TEST(DetectionOutput, DecodesByEachCode) {
  Figures inputs = {{"prior", {0.2F, 0.2F, 0.6F, 0.4F, 0.5F, 0.5F, 0.25F, 0.25F}},
                    {"loc", {0.5F, 1, 2, -1}},
                    {"conf", {0, 1}}};
  const auto box = [&](const std::string& fields) {
    const std::vector<float> row = detect(detection(1, 1, 1, "keep_top_k: 1 " + fields), inputs);
    return std::vector<float>(row.begin() + 3, row.end());
  };
  const double w = std::exp(0.5) * 0.4 / 2, h = std::exp(-0.25) * 0.2 / 2;
  expect_close(box("code_type: CENTER_SIZE"),
               {float(0.5 - w), float(0.4 - h), float(0.5 + w), float(0.4 + h)}, 1e-5, "center");
  expect_close(box("code_type: CORNER"), {0.45F, 0.7F, 1.1F, 0.15F}, 1e-5, "corner");
  expect_close(box("code_type: CORNER_SIZE"), {0.3F, 0.3F, 0.8F, 0.35F}, 1e-5, "corner size");
  expect_close(box("code_type: CORNER variance_encoded_in_target: true"), {0.7F, 1.2F, 2.6F, -0.6F},
               1e-5, "plain");
}

TEST(DetectionOutput, EachClassMayHaveItsOwnPlaces) {
  Figures inputs = three();
  inputs["loc"] = std::vector<float>(24, 0);
  for (size_t p = 0; p < 3; ++p) inputs["loc"][p * 8 + 4] = 0.2F;  // class 1 moves x1
  const std::vector<float> rows = detect(
      detection(1, 3, 2, "share_location: false keep_top_k: 1 nms_param { nms_threshold: 1 }"),
      inputs);
  EXPECT_THAT(rows, ElementsAre(0, 1, 0.9F, 0.3F, 0, 0.6F, 0.4F));
}

TEST(DetectionOutput, TheThresholdFallsByEta) {
  Figures inputs = three();
  // The second prior now overlaps the first by 0.6, the third overlaps none.
  inputs["prior"] = {0, 0, 0.4F, 0.4F, 0.1F, 0, 0.5F, 0.4F, 0.6F, 0.6F, 1, 1,
                     1, 1, 1,    1,    1,    1, 1,    1,    1,    1,    1, 1};
  inputs["conf"] = {0, 0.7F, 0, 0.6F, 0, 0.9F};
  const auto found = [&](const std::string& eta) {
    const std::vector<float> rows = detect(
        detection(1, 3, 1, "keep_top_k: 3 nms_param { nms_threshold: 0.65 " + eta + " }"), inputs);
    return (rows[0] >= 0) + (rows[7] >= 0) + (rows[14] >= 0);
  };
  EXPECT_EQ(found(""), 3);
  EXPECT_EQ(found("eta: 0.9"), 2);
}

TEST(DetectionOutput, Refusals) {
  EXPECT_THAT(refusal(detection(1, 3, 1, "share_location: false")),
              HasSubstr("need places (N, 24)"));
  EXPECT_THAT(refusal(detection(1, 3, 1, "nms_param { eta: 2 }")), HasSubstr("eta in (0, 1]"));
}

// torchvision 0.29.2: nms of these boxes and scores.
TEST(Suppress, KeepsWhatTorchvisionKeeps) {
  const std::vector<int> numbers = {
      76, 28, 104, 79,  3,  80, 31, 133, 57, 44, 102, 81,  68, 31, 101, 62,  57, 50, 123, 96,
      31, 20, 61,  40,  34, 52, 90, 106, 1,  81, 46,  149, 83, 4,  85,  23,  94, 42, 144, 60,
      99, 29, 160, 64,  24, 76, 40, 121, 36, 45, 37,  63,  77, 38, 147, 101, 48, 17, 104, 62,
      18, 82, 74,  149, 22, 42, 56, 82,  12, 15, 66,  41,  74, 53, 121, 96,  68, 75, 71,  127,
      15, 12, 52,  41,  79, 21, 83, 82,  43, 78, 89,  87,  60, 62, 72,  80};
  const std::vector<float> scores = {0.67F,  0.59F,  0.287F, 0.349F, 0.958F, 0.407F, 0.782F, 0.717F,
                                     0.177F, 0.075F, 0.98F,  0.526F, 0.843F, 0.604F, 0.661F, 0.873F,
                                     0.974F, 0.168F, 0.563F, 0.873F, 0.862F, 0.811F, 0.138F, 0.14F};
  std::vector<Box> boxes;
  for (size_t i = 0; i < numbers.size(); i += 4) {
    boxes.push_back({float(numbers[i]) / 100, float(numbers[i + 1]) / 100,
                     float(numbers[i + 2]) / 100, float(numbers[i + 3]) / 100});
  }
  const auto kept = [&](float threshold) {
    return suppress(boxes, by_score(scores), {.threshold = threshold});
  };
  EXPECT_THAT(kept(0.3F), ElementsAre(10, 16, 4, 15, 19, 20, 12, 21, 0, 1, 11, 8, 23, 22));
  EXPECT_THAT(kept(0.5F), ElementsAre(10, 16, 4, 15, 19, 20, 12, 21, 6, 7, 0, 14, 13, 1, 11, 5, 3,
                                      2, 8, 23, 22, 9));
}

}  // namespace
}  // namespace cafetiere
