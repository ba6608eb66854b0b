// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string annotator(const std::string& fields, int64_t losses = 5) {
  return input("r", {5, 5}) + input("l", {losses}) + input("label", {5}) + input("w", {5, 2}) +
         layer("BoxAnnotatorOHEM",
               "bottom: 'r' bottom: 'l' bottom: 'label' bottom: 'w' top: 'y' top: 'v' "
               "propagate_down: false propagate_down: false propagate_down: false "
               "propagate_down: false",
               "box_annotator_ohem_param { " + fields + " }");
}

TEST(BoxAnnotatorOHEM, KeepsTheLargestLossesOfEachImage) {
  Figures inputs = {
      {"l", {1, 3, 3, 0.5, 7}}, {"label", {4, 5, 6, 7, 8}}, {"w", {1, 1, 2, 2, 3, 3, 4, 4, 5, 5}}};
  for (const float image : {0, 0, 0, 1, 1}) {
    inputs["r"].insert(inputs["r"].end(), {image, 1, 2, 3, 4});
  }
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(annotator("roi_per_img: 1"), inputs, caffe::TRAIN, *device);
    EXPECT_THAT(figures["y"], ElementsAre(-1, 5, -1, -1, 8)) << "the earlier one of equals";
    EXPECT_THAT(figures["v"], ElementsAre(0, 0, 2, 2, 0, 0, 0, 0, 5, 5));
    figures = evaluate(annotator("roi_per_img: 2 ignore_label: 9"), inputs, caffe::TRAIN, *device);
    EXPECT_THAT(figures["y"], ElementsAre(9, 5, 6, 7, 8));
  }
}

TEST(BoxAnnotatorOHEM, Refusals) {
  EXPECT_THAT(refusal(annotator("")), HasSubstr("give roi_per_img"));
  EXPECT_THAT(refusal(annotator("roi_per_img: 1", 4)), HasSubstr("each of the 5 regions"));
}

}  // namespace
}  // namespace cafetiere
