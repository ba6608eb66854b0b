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

// torchvision 0.29.2: roi_pool(x, regions, (2, 3), 0.5), and its gradient for dy = 0, 1, 2, ..
TEST(ROIPooling, ValuesAndGradientOfTorchvision) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    auto net = TestNet::build(
        roi_pooling({2, 3, 6, 5}, {3, 5}, "pooled_h: 2 pooled_w: 3 spatial_scale: 0.5"),
        caffe::TRAIN);
    ASSERT_TRUE(net.ok()) << net.status().message();
    auto plan = (*net)->plan(*device, 0);
    ASSERT_TRUE(plan.ok()) << plan.status().message();
    for (int i = 0; i < 180; ++i) {
      (*plan)->inputs()[0].data[i] = float((i * i * 7 + 3 * i) % 61);
    }
    std::ranges::copy(
        std::vector<float>{0, 1, 2.4F, 7.6F, 9.1F, 1, 0, 0, 9, 11, 1, 3.3F, 2.2F, 4.9F, 5.1F},
        (*plan)->inputs()[1].data);
    for (int i = 0; i < 54; ++i) (*plan)->outputs()[0].diff[i] = float(i);
    ThreadPool pool(2);
    ASSERT_TRUE((*plan)->run(pool, {}).ok());
    const std::vector<float> y = {59, 59, 45, 60, 60, 57, 56, 56, 57, 60, 58, 58, 59, 59,
                                  59, 58, 60, 60, 57, 56, 46, 57, 60, 58, 45, 59, 59, 51,
                                  58, 60, 57, 56, 56, 58, 60, 52, 56, 56, 56, 56, 56, 56,
                                  59, 59, 59, 59, 59, 59, 35, 35, 35, 36, 36, 36};
    const std::map<int, float> dx = {
        {7, 1},     {8, 2},     {27, 7},   {29, 5},   {37, 13},  {49, 8},   {51, 9},
        {53, 21},   {68, 27},   {71, 12},  {86, 15},  {88, 33},  {90, 18},  {98, 19},
        {102, 231}, {109, 20},  {110, 21}, {112, 22}, {114, 23}, {129, 26}, {130, 24},
        {132, 292}, {145, 27},  {147, 28}, {149, 29}, {151, 30}, {159, 32}, {162, 147},
        {163, 31},  {167, 156}, {173, 34}, {174, 35}, {175, 33}};
    for (int i = 0; i < 54; ++i) EXPECT_EQ((*plan)->outputs()[0].data[i], y[size_t(i)]) << i;
    for (int i = 0; i < 180; ++i) {
      EXPECT_EQ((*plan)->input_diffs()[0].data[i], dx.contains(i) ? dx.at(i) : 0) << i;
    }
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
