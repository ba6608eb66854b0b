// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

std::string normalize(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("Normalize", "bottom: 'x' top: 'y'", "norm_param { " + fields + " }");
}

TEST(Normalize, Gradients) {
  check_layer({normalize({3, 4, 3, 2}, "")});
  check_layer({normalize({3, 17, 3, 2}, "across_spatial: false")});
  check_layer({normalize({3, 4}, "eps: 0.5")});
  // SSD leaves the scales out of a sum: not the true gradient once they differ.
  for (const std::string across : {"true", "false"}) {
    check_layer(
        {.layers = normalize({3, 4, 3, 2}, "channel_shared: false across_spatial: " + across),
         .numeric = false});
  }
}

// In double precision by the formula of SSD.
TEST(Normalize, ValuesAndGradientOfTheFormula) {
  constexpr int kChannels = 3, kPixels = 2;
  const std::vector<float> x = {1, -2, 3, 0.5F, -1, 4};
  for (const bool across : {true, false}) {
    for (const auto& device : {make_ref_device(), make_cpu_device()}) {
      Figures got = evaluate(normalize({1, kChannels, 1, kPixels},
                                       std::string("channel_shared: false across_spatial: ") +
                                           (across ? "true" : "false")),
                             {{"x", x}}, caffe::TRAIN, *device);  // the gradient of y is 0
      for (size_t i = 0; i < x.size(); ++i) {
        double sum = 1e-10;
        for (size_t j = 0; j < x.size(); ++j) {
          if (across || j % kPixels == i % kPixels) sum += double(x[j]) * double(x[j]);
        }
        EXPECT_NEAR(got["y"][i], 0.5 * double(x[i]) / std::sqrt(sum), 1e-6);
      }
    }
  }
}

TEST(Normalize, HasOneScaleOrOneAChannel) {
  const auto shape = [](const std::string& fields) {
    auto net = TestNet::build(normalize({1, 5, 2, 2}, fields), caffe::TEST);
    return net.ok() ? (*net)->graph().params()[0].shape : Shape{0};
  };
  EXPECT_EQ(shape(""), Shape{});
  EXPECT_EQ(shape("channel_shared: false"), Shape{5});
}

TEST(Normalize, Refusals) {
  EXPECT_THAT(refusal(normalize({5}, "")), HasSubstr("at least 2 axes"));
}

std::string pixel_normalize(const std::vector<int64_t>& dims, const std::string& fields,
                            const std::string& tops = "top: 'y'") {
  return input("x", dims) +
         layer("Normalize", "bottom: 'x' " + tops, "normalize_param { " + fields + " }");
}

TEST(PixelNormalize, Gradients) {
  for (const std::string type : {"L1", "L2"}) {
    const std::string of = "normalize_type: '" + type + "'";
    check_layer({pixel_normalize({3, 4, 3, 2}, of)});
    check_layer({pixel_normalize({3, 4, 3, 2}, of + " bp_norm: true", "top: 'y' top: 'norm'")});
    check_layer({.layers = pixel_normalize({3, 4, 3, 2}, of, "top: 'y' top: 'norm'"),
                 .numeric = false});  // the norms' gradient is left out
  }
}

// By NumPy: x / sqrt(sum of squares + 1e-6), x / (sum of sizes + 1e-6).
TEST(PixelNormalize, ValuesOfNumPy) {
  const Figures inputs = {{"x", {3, -1, 4, 2}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto values = [&](const std::string& type) {
      return evaluate(
          pixel_normalize({1, 2, 1, 2}, "normalize_type: '" + type + "'", "top: 'y' top: 'norm'"),
          inputs, caffe::TEST, *device);
    };
    Figures l2 = values("L2"), l1 = values("L1");
    expect_close(l2["y"], {0.6F, -0.44721355F, 0.8F, 0.8944271F}, 1e-6, "L2");
    expect_close(l2["norm"], {5, 2.23606820F}, 1e-6, "L2 norms");
    expect_close(l1["y"], {0.42857137F, -0.33333322F, 0.57142849F, 0.66666644F}, 1e-6, "L1");
    expect_close(l1["norm"], {7.000001F, 3.000001F}, 1e-6, "L1 norms");
  }
}

TEST(PixelNormalize, Refusals) {
  EXPECT_THAT(refusal(pixel_normalize({1, 2}, "normalize_type: 'L3'")), HasSubstr("\"L3\""));
  EXPECT_THAT(refusal(input("x", {1, 2}) + layer("Normalize", "bottom: 'x' top: 'y' top: 'z'")),
              HasSubstr("a second top"));
}

}  // namespace
}  // namespace cafetiere
