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

std::string bn(const std::vector<int64_t>& dims, const std::string& fields,
               const std::string& tops = "top: 'y'") {
  return input("x", dims) + layer("BN", "bottom: 'x' " + tops, "bn_param { " + fields + " }");
}

TEST(BN, Gradients) {
  for (const std::string fields :
       {"", "momentum: 0.5 eps: 0.1", "frozen: true", "bn_mode: LEARN scale_filler { value: 1 }",
        "bn_mode: INFERENCE"}) {
    check_layer({bn({3, 4, 3, 2}, fields)});
    check_layer({.layers = bn({3, 4, 3, 2}, fields), .phase = caffe::TEST});
  }
}

TEST(BN, FoldsIntoAConvolution) {
  for (const std::string fields : {"", "bn_mode: INFERENCE"}) {
    check_layer(
        {.layers = input("x", {4, 2, 5, 5}) +
                   layer("Convolution", "name: 'conv' bottom: 'x' top: 'y'",
                         "convolution_param { num_output: 6 kernel_size: 3 }") +
                   layer("BN", "name: 'bn' bottom: 'y' top: 'y'", "bn_param { " + fields + " }"),
         .phase = caffe::TEST,
         .numeric = false});
  }
}

// By the formulas; all blobs are 0.5.
TEST(BN, Values) {
  const double mean = 3, variance = 3.5;
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto figures = [&](const std::string& fields, caffe::Phase phase,
                             const std::string& tops = "top: 'y'") {
      return evaluate(bn({4, 1}, fields, tops), {{"x", {1, 2, 3, 6}}}, phase, *device);
    };
    Figures train = figures("momentum: 0.75", caffe::TRAIN);
    const auto by_batch = [&](double x, double eps) {
      return FloatNear(float(0.5 * (x - mean) / std::sqrt(variance + eps) + 0.5), 1e-6F);
    };
    EXPECT_THAT(train["y"], ElementsAre(by_batch(1, 1e-5), by_batch(2, 1e-5), by_batch(3, 1e-5),
                                        by_batch(6, 1e-5)));
    EXPECT_FLOAT_EQ(train["L[2] diff"][0], float(0.25 * mean));
    EXPECT_FLOAT_EQ(train["L[3] diff"][0], float(0.25 * variance)) << "the biased variance";
    for (Figures stored : {figures("", caffe::TEST), figures("frozen: true", caffe::TRAIN)}) {
      EXPECT_NEAR(stored["y"][0], 0.5 * (1 - 0.5) / std::sqrt(0.5 + 1e-5) + 0.5, 1e-6);
    }
    Figures segnet = figures("scale_filler { value: 1 } shift_filler { value: 0 }", caffe::TEST,
                             "top: 'y' top: 'm' top: 'v' propagate_down: false");
    EXPECT_THAT(segnet["y"], ElementsAre(by_batch(1, 1e-9), by_batch(2, 1e-9), by_batch(3, 1e-9),
                                         by_batch(6, 1e-9)));
    EXPECT_THAT(segnet["m"], ElementsAre(mean));
    EXPECT_THAT(segnet["v"], ElementsAre(variance));
    EXPECT_THAT(figures("bn_mode: INFERENCE", caffe::TEST)["y"], ElementsAre(1, 1.5, 2, 3.5));
  }
}

TEST(BN, HasTheBlobsOfItsFork) {
  const auto params = [](const std::string& fields) {
    auto net = TestNet::build(bn({2, 3, 4, 4}, fields), caffe::TRAIN);
    return net.ok() ? (*net)->graph().params() : std::vector<Param>{};
  };
  for (const Param& p : params("")) EXPECT_EQ(p.shape, (Shape{1, 3, 1, 1}));
  EXPECT_EQ(params("").size(), 4U);
  EXPECT_EQ(params("shift_filler { value: 0 }").size(), 2U);
  for (const Param& p : params("frozen: true")) {
    EXPECT_EQ(p.kind, ParamKind::kStatistic);
    EXPECT_EQ(p.fraction, 1);
  }
}

TEST(BN, Refusals) {
  EXPECT_THAT(refusal(bn({5}, "")), HasSubstr("at least 2 axes"));
  EXPECT_THAT(refusal(bn({5, 2}, "", "top: 'y' top: 'm'")), HasSubstr("mode LEARN"));
}

}  // namespace
}  // namespace cafetiere
