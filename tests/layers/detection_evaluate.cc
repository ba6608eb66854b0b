// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

std::string evaluate_layer(int detections, int objects, const std::string& fields) {
  return input("found", {1, 1, detections, 7}) + input("truth", {1, 1, objects, 8}) +
         layer("DetectionEvaluate", "bottom: 'found' bottom: 'truth' top: 'y'",
               "detection_evaluate_param { num_classes: 3 " + fields + " }");
}

/// Two images. In image 0 an object of class 1 is found twice and one of class 2, which is difficult, once;
/// in image 1 nothing is where it is said to be.
Figures scene() {
  Figures f;
  f["truth"] = {0,  1,  0,  0,    0,    0.4F, 0.4F, 0,  //
                0,  2,  0,  0.5F, 0.5F, 1,    1,    1,  //
                1,  2,  0,  0,    0,    0.5F, 0.5F, 0,  //
                -1, -1, -1, -1,   -1,   -1,   -1,   -1};
  f["found"] = {0,  1,  0.5F, 0,    0,    0.4F, 0.4F,  //
                0,  1,  0.9F, 0,    0,    0.4F, 0.3F,  //
                0,  2,  0.7F, 0.5F, 0.5F, 1,    1,     //
                1,  1,  0.6F, 0,    0,    0.5F, 0.5F,  //
                1,  2,  0.8F, 0.5F, 0.5F, 1,    1,     //
                -1, -1, -1,   -1,   -1,   -1,   -1};
  return f;
}

TEST(DetectionEvaluate, SaysWhichDetectionsAreRight) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto rows = [&](const std::string& fields) {
      return evaluate(evaluate_layer(6, 4, fields), scene(), caffe::TEST, *device)["y"];
    };
    std::vector<float> y = rows("");
    ASSERT_EQ(y.size(), 45U);  // room for three classes and six detections
    const std::vector<float> all = {-1, 1, 1,    -1, -1,  //
                                    -1, 2, 2,    -1, -1,  //
                                    0,  1, 0.9F, 1,  0,   // the better one
                                    0,  1, 0.5F, 0,  1,   // of the same object
                                    0,  2, 0.7F, 1,  0,   //
                                    1,  1, 0.6F, 0,  1,   // there is none
                                    1,  2, 0.8F, 0,  1};  // elsewhere
    EXPECT_THAT(std::vector<float>(y.begin(), y.begin() + 35), ElementsAreArray(all));
    EXPECT_THAT(std::vector<float>(y.begin() + 35, y.end()), Each(-1));
    y = rows("evaluate_difficult_gt: false");
    EXPECT_EQ(y[7], 1) << "of class 2 one counts";
    EXPECT_EQ(y[5 * 4 + 3], 0) << "a difficult one is neither right";
    EXPECT_EQ(y[5 * 4 + 4], 0) << "nor wrong";
    y = rows("overlap_threshold: 0.8");
    EXPECT_EQ(y[5 * 2 + 3], 0) << "it overlaps by 0.75";
    EXPECT_EQ(y[5 * 3 + 3], 1);
  }
}

TEST(DetectionEvaluate, Refusals) {
  EXPECT_THAT(refusal(evaluate_layer(2, 2, "num_classes: 1")), HasSubstr("num_classes"));
  EXPECT_THAT(refusal(evaluate_layer(2, 2, "overlap_threshold: 0")),
              HasSubstr("overlap_threshold"));
  EXPECT_THAT(refusal(input("a", {1, 1, 2, 6}) + input("b", {1, 1, 2, 8}) +
                      layer("DetectionEvaluate", "bottom: 'a' bottom: 'b' top: 'y'",
                            "detection_evaluate_param { num_classes: 3 }")),
              HasSubstr("(1, 1, D, 7)"));
}

}  // namespace
}  // namespace cafetiere
