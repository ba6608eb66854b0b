// SPDX-License-Identifier: Apache-2.0
#include "core/train/mean_precision.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cafetiere {
namespace {

using testing::HasSubstr;

/// Class 1 has 4 objects in two batches; right, wrong, right, right, wrong by falling score. Class 2 has one, which is not
/// found. Of class 3 there is none.
std::vector<double> rows() {
  return {-1, 1,  3,    -1, -1,  //
          -1, 2,  1,    -1, -1,  //
          -1, 3,  0,    -1, -1,  //
          0,  1,  0.9,  1,  0,   //
          0,  1,  0.6,  1,  0,   //
          0,  1,  0.8,  0,  1,   //
          0,  3,  0.7,  0,  1,   //
          -1, 1,  1,    -1, -1,  // the next batch
          1,  1,  0.5,  0,  1,   //
          1,  1,  0.55, 1,  0,   //
          1,  1,  0.95, 0,  0,   // an object that does not count
          -1, -1, -1,   -1, -1};
}

double of_class(int label, PrecisionForm form) {
  return average_precisions(rows(), form).at(label);
}

// By hand: recalls 1/4, 1/4, 2/4, 3/4, 3/4 with precisions 1, 1/2, 2/3, 3/4, 3/5.
TEST(MeanPrecision, OfEachForm) {
  EXPECT_NEAR(of_class(1, PrecisionForm::kIntegral), (1 + 2 / 3. + 3 / 4.) / 4, 1e-12);
  EXPECT_NEAR(of_class(1, PrecisionForm::kMaxIntegral), (1 + 3 / 4. + 3 / 4.) / 4, 1e-12);
  // Recalls up to 0.2: 1; up to 0.7: 3/4; beyond: 0.
  EXPECT_NEAR(of_class(1, PrecisionForm::kElevenPoint), (3 * 1 + 5 * 0.75) / 11, 1e-12);
  for (const auto form :
       {PrecisionForm::kIntegral, PrecisionForm::kMaxIntegral, PrecisionForm::kElevenPoint}) {
    EXPECT_EQ(of_class(2, form), 0);
    EXPECT_EQ(of_class(3, form), 0);
    EXPECT_EQ(average_precisions(rows(), form).size(), 3U);
  }
}

TEST(MeanPrecision, WordsOfSolvers) {
  caffe::SolverParameter p;
  EXPECT_FALSE(*evaluates_detections(p));
  p.set_eval_type("detection");
  EXPECT_TRUE(*evaluates_detections(p));
  p.set_eval_type("segmentation");
  EXPECT_THAT(evaluates_detections(p).status().message(), HasSubstr("\"segmentation\""));
  EXPECT_EQ(*precision_form(p), PrecisionForm::kIntegral);
  p.set_ap_version("11point");
  EXPECT_EQ(*precision_form(p), PrecisionForm::kElevenPoint);
  p.set_ap_version("12point");
  EXPECT_THAT(precision_form(p).status().message(), HasSubstr("\"12point\""));
}

}  // namespace
}  // namespace cafetiere
