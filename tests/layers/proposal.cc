// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

constexpr int kAnchors = 9, kHeight = 3, kWidth = 4;

std::string proposal(const std::string& fields, int images = 1) {
  return input("s", {images, 2 * kAnchors, kHeight, kWidth}) +
         input("d", {images, 4 * kAnchors, kHeight, kWidth}) + input("i", {1, 3}) +
         layer("Proposal",
               "bottom: 's' bottom: 'd' bottom: 'i' top: 'y' top: 'p' propagate_down: false "
               "propagate_down: false propagate_down: false",
               "proposal_param { " + fields + " }");
}

/// All anchors unmoved, in an image in which all of them fit, scores 0.
Figures unmoved() {
  return {{"s", std::vector<float>(2 * kAnchors * kHeight * kWidth, 0)},
          {"d", std::vector<float>(4 * kAnchors * kHeight * kWidth, 0)},
          {"i", {2000, 3000, 1}}};
}

/// The place of a score of an object.
size_t score_at(int anchor, int row, int column) {
  return size_t(((kAnchors + anchor) * kHeight + row) * kWidth + column);
}

// Ratio 0.5 in scale 8 is (-84, -40, 99, 55) at the first pixel; a box that is not moved becomes a pixel
// longer, as the corners are center +- size / 2.
TEST(Proposal, HasFasterRcnnsAnchors) {
  Figures inputs = unmoved();
  inputs["s"][score_at(0, 2, 3)] = 0.9F;  // ratio 0.5, scale 8
  inputs["s"][score_at(4, 2, 3)] = 0.8F;  // ratio 1, scale 16: (-120, -120, 135, 135)
  inputs["s"][score_at(8, 1, 1)] = 0.7F;  // ratio 2, scale 32: (-168, -344, 183, 359)
  const auto cpu = make_cpu_device();
  Figures found = evaluate(proposal("pre_nms_topn: 3 post_nms_topn: 4 nms_thresh: 1"), inputs,
                           caffe::TEST, *cpu);
  EXPECT_THAT(found["y"], ElementsAre(0, 0, 0, 100 + 48, 56 + 32,   //
                                      0, 0, 0, 136 + 48, 136 + 32,  //
                                      0, 0, 0, 184 + 16, 360 + 16,  //
                                      -1, -1, -1, -1, -1))
      << "cut to the image";
  EXPECT_THAT(found["p"], ElementsAre(0.9F, 0.8F, 0.7F, -1));
}

TEST(Proposal, MovesCutsAndDrops) {
  Figures inputs = unmoved();
  inputs["i"] = {40, 50, 1};
  const size_t best = score_at(1, 0, 0) - size_t(kAnchors * kHeight * kWidth);
  inputs["s"][score_at(1, 0, 0)] = 0.9F;
  // Anchor 1, ratio 0.5 and scale 16: (-176, -88, 191, 103), 368 x 192 around (8, 8).
  const auto delta = [&](int d) -> float& {
    return inputs["d"][size_t((4 * 1 + d) * kHeight * kWidth)];
  };
  delta(0) = 10.0F / 368, delta(1) = 5.0F / 192;
  delta(2) = float(std::log(20.0 / 368)), delta(3) = float(std::log(18.0 / 192));
  ASSERT_EQ(best, size_t(kHeight * kWidth));
  const auto cpu = make_cpu_device();
  const auto rows = [&](const std::string& fields) {
    return evaluate(proposal("pre_nms_topn: 1 post_nms_topn: 1 " + fields), inputs, caffe::TEST,
                    *cpu)["y"];
  };
  EXPECT_THAT(rows(""), ElementsAre(0, FloatNear(8, 1e-4), FloatNear(4, 1e-4), FloatNear(28, 1e-4),
                                    FloatNear(22, 1e-4)));
  EXPECT_NE(rows("min_size: 20")[4], 22.F) << "a box of 21 x 19 is too small";
}

TEST(Proposal, DropsWhatOverlaps) {
  Figures inputs = unmoved();
  inputs["s"][score_at(4, 1, 1)] = 0.9F;
  inputs["s"][score_at(4, 1, 2)] = 0.8F;  // 16 pixels on: an overlap of 0.88
  const auto cpu = make_cpu_device();
  const auto scores = [&](const std::string& threshold) {
    return evaluate(proposal("pre_nms_topn: 2 post_nms_topn: 2 nms_thresh: " + threshold), inputs,
                    caffe::TEST, *cpu)["p"];
  };
  EXPECT_THAT(scores("0.7"), ElementsAre(0.9F, -1));
  EXPECT_THAT(scores("0.95"), ElementsAre(0.9F, 0.8F));
}

TEST(Proposal, Refusals) {
  EXPECT_THAT(refusal(proposal("", 2)), HasSubstr("one image at a time"));
  EXPECT_THAT(refusal(proposal("scale: 8")), HasSubstr("3 anchors need scores (1, 6"));
  EXPECT_THAT(refusal(proposal("feat_stride: 0")), HasSubstr("must be above 0"));
}

}  // namespace
}  // namespace cafetiere
