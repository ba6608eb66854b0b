// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string upsample(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("Upsample", "bottom: 'x' top: 'y'", "upsample_param { " + fields + " }");
}

/// A pooling, and the upsampling that puts its values back.
std::string segnet(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("Pooling", "name: 'pool' bottom: 'x' top: 'p' top: 'm'",
               "pooling_param { kernel_size: 2 stride: 2 }") +
         layer("Upsample", "bottom: 'p' bottom: 'm' top: 'y'", "upsample_param { " + fields + " }");
}

TEST(Upsample, Gradients) {
  check_layer({upsample({4, 3, 2, 5}, "scale: 2")});
  check_layer({upsample({4, 17, 3, 2}, "scale_h: 3 scale_w: 2")});
  check_layer({segnet({4, 3, 4, 6}, "")});
  check_layer({segnet({4, 3, 5, 6}, "scale: 2 pad_out_h: true")});
  check_layer({segnet({4, 3, 5, 7}, "upsample_h: 5 upsample_w: 7")});
}

// torch.nn.functional.interpolate(mode="nearest"), and max_unpool2d of max_pool2d.
TEST(Upsample, ValuesOfTorch) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    EXPECT_THAT(
        evaluate(upsample({1, 1, 1, 2}, "scale: 2"), {{"x", {3, 4}}}, caffe::TEST, *device)["y"],
        ElementsAre(3, 3, 4, 4, 3, 3, 4, 4));
    EXPECT_THAT(evaluate(upsample({1, 1, 1, 2}, ""), {{"x", {3, 4}}}, caffe::TEST, *device)["y"],
                ElementsAre(3, 4));
    EXPECT_THAT(evaluate(segnet({1, 1, 2, 4}, ""), {{"x", {1, 5, 2, 2, 3, 4, 9, 8}}}, caffe::TEST,
                         *device)["y"],
                ElementsAre(0, 5, 0, 0, 0, 0, 9, 0));
  }
}

TEST(Upsample, AnIndexBeyondThePlaneIsLeftOut) {
  const std::string net = input("x", {1, 1, 1, 3}) + input("label", {1, 1, 1, 3}) +
                          layer("Upsample", "bottom: 'x' bottom: 'label' top: 'y'",
                                "upsample_param { upsample_h: 1 upsample_w: 4 }");
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    EXPECT_THAT(evaluate(net, {{"x", {7, 8, 9}}, {"label", {4, -1, 3}}}, caffe::TEST, *device)["y"],
                ElementsAre(0, 0, 0, 9));
  }
}

TEST(Upsample, Refusals) {
  EXPECT_THAT(refusal(upsample({1, 1, 2, 2}, "scale: 0")), HasSubstr("scale must be above 0"));
  EXPECT_THAT(refusal(segnet({1, 1, 4, 4}, "scale: 3 pad_out_w: true")), HasSubstr("need scale 2"));
  EXPECT_THAT(refusal(upsample({1, 1, 4, 4}, "scale: 2 pad_out_h: true")),
              HasSubstr("belong to the form with two bottoms"));
  EXPECT_THAT(refusal(input("x", {1, 1, 2, 2}) + input("m", {1, 1, 2, 3}) +
                      layer("Upsample", "bottom: 'x' bottom: 'm' top: 'y'")),
              HasSubstr("indices of a Pooling"));
}

}  // namespace
}  // namespace cafetiere
