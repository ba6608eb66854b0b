// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string psroi_pooling(const std::vector<int64_t>& x, const std::vector<int64_t>& regions,
                          const std::string& fields) {
  return input("x", x) + input("label", regions) +
         layer("PSROIPooling", "bottom: 'x' bottom: 'label' top: 'y'",
               "psroi_pooling_param { " + fields + " }");
}

TEST(PSROIPooling, Gradients) {
  check_layer({.layers = psroi_pooling({4, 8, 6, 5}, {7, 5},
                                       "spatial_scale: 1.5 output_dim: 2 group_size: 2"),
               .labels = 4});
}

// By the formula: corners (0, 0) and (2, 2) times 2 make bins of one pixel and a half.
TEST(PSROIPooling, EachBinIsTheMeanOfAChannelOfItsOwn) {
  Figures inputs{{"label", {0, 0, 0, 2, 2}}};
  for (int c = 0; c < 4; ++c) {
    for (int i = 0; i < 16; ++i) inputs["x"].push_back(float(100 * c + i));
  }
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    // Rows and columns 0 to 1 or 1 to 2, of channels 0 to 3.
    EXPECT_THAT(evaluate(psroi_pooling({1, 4, 4, 4}, {1, 5},
                                       "spatial_scale: 1 output_dim: 1 group_size: 2"),
                         inputs, caffe::TEST, *device)["y"],
                ElementsAre(2.5, 103.5, 206.5, 307.5));
  }
}

// torchvision 0.29.2: ps_roi_pool(x, regions + (0, 0, 0, 1, 1), 2, 1). Its regions end before their last
// corner, and it leaves the last row and column of a map out: none of these gets there.
TEST(PSROIPooling, ValuesOfTorchvision) {
  Figures inputs;
  for (int i = 0; i < 400; ++i) inputs["x"].push_back(float((i * i * 7 + 3 * i) % 61));
  inputs["label"] = {0, 1, 1, 3, 3, 1, 0, 0, 3, 2, 1, 1, 0, 1, 2};
  const std::vector<float> y = {29.5F,  33,    10.75F, 41.5F,  30.5F,  32.25F, 29.75F, 28.25F,
                                23.25F, 33.5F, 10.75F, 25.25F, 21.75F, 42.5F,  42.5F,  21.75F,
                                27.5F,  32,    3.5F,   43,     24.5F,  45.5F,  49,     44};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    expect_close(evaluate(input("x", {2, 8, 5, 5}) + input("label", {3, 5}) +
                              layer("PSROIPooling", "bottom: 'x' bottom: 'label' top: 'y'",
                                    "psroi_pooling_param { spatial_scale: 1 output_dim: 2 "
                                    "group_size: 2 }"),
                          inputs, caffe::TEST, *device)["y"],
                 y, 1e-6, device->name());
  }
}

TEST(PSROIPooling, Refusals) {
  EXPECT_THAT(refusal(psroi_pooling({1, 4, 4, 4}, {1, 5}, "output_dim: 1 group_size: 2")),
              HasSubstr("give spatial_scale"));
  EXPECT_THAT(
      refusal(psroi_pooling({1, 5, 4, 4}, {1, 5}, "spatial_scale: 1 output_dim: 1 group_size: 2")),
      HasSubstr("features (N, 4, H, W)"));
}

}  // namespace
}  // namespace cafetiere
