// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string roi_pooling(const std::vector<int64_t>& x, const std::vector<int64_t>& regions,
                        const std::string& fields) {
  return input("x", x) + input("label", regions) +
         layer("ROIPooling", "bottom: 'x' bottom: 'label' top: 'y'",
               "roi_pooling_param { " + fields + " }");
}

TEST(ROIPooling, Gradients) {
  check_layer(
      {.layers = roi_pooling({4, 3, 6, 5}, {7, 5}, "pooled_h: 2 pooled_w: 3 spatial_scale: 2"),
       .labels = 3});
  check_layer({.layers = roi_pooling({4, 2, 6, 5}, {3, 5, 1, 1}, "pooled_size: 2"), .labels = 4});
}

// By NumPy, from the formula: two images of one plane; the last two regions lie outside in part.
TEST(ROIPooling, Values) {
  Figures inputs;
  for (int i = 0; i < 32; ++i) inputs["x"].push_back(float(i * 7 % 32));
  inputs["label"] = {0, 0, 0, 7, 7, 1, 2, 1, 5, 6, 0, 6, 6, 20, 20, 1, -3, -5, 2, 3};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    EXPECT_THAT(
        evaluate(roi_pooling({2, 1, 4, 4}, {4, 5}, "pooled_h: 2 pooled_w: 2 spatial_scale: 0.5"),
                 inputs, caffe::TEST, *device)["y"],
        ElementsAre(31, 21, 31, 13, 26, 29, 22, 29, 9, 0, 0, 0, 0, 0, 0, 23))
        << device->name();
  }
}

TEST(ROIPooling, ARegionOfNoImageGivesZeros) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const Figures inputs = {{"x", {1, 2, 3, 4}},
                            {"label", {-1, 0, 0, 1, 1, 7, 0, 0, 1, 1, NAN, 0, 0, NAN, 1}}};
    EXPECT_THAT(evaluate(roi_pooling({1, 1, 2, 2}, {3, 5}, "pooled_h: 1 pooled_w: 1"), inputs,
                         caffe::TEST, *device)["y"],
                ElementsAre(0, 0, 0));
  }
}

TEST(ROIPooling, Refusals) {
  EXPECT_THAT(refusal(roi_pooling({1, 1, 4, 4}, {2, 5}, "pooled_h: 2")), HasSubstr("pooled_w"));
  EXPECT_THAT(refusal(roi_pooling({1, 1, 4, 4}, {2, 4}, "pooled_h: 2 pooled_w: 2")),
              HasSubstr("regions (R, 5)"));
  EXPECT_THAT(refusal(roi_pooling({1, 16}, {2, 5}, "pooled_h: 2 pooled_w: 2")),
              HasSubstr("features of 4 axes"));
}

}  // namespace
}  // namespace cafetiere
