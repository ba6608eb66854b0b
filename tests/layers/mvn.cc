// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

std::string mvn(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) + layer("MVN", "bottom: 'x' top: 'y'", "mvn_param { " + fields + " }");
}

TEST(Mvn, Gradients) {
  for (const std::string across : {"across_channels: false", "across_channels: true"}) {
    check_layer({mvn({2, 3, 4, 5}, across)});
    check_layer({mvn({2, 3, 4, 5}, across + " normalize_variance: false")});
  }
  check_layer({mvn({3, 7}, "across_channels: true")});
}

TEST(Mvn, AfterAConvolution) {
  check_layer({input("x", {2, 2, 5, 4}) +
               layer("Convolution", "name: 'conv' bottom: 'x' top: 'c'",
                     "convolution_param { num_output: 3 kernel_size: 2 bias_term: false }") +
               layer("MVN", "bottom: 'c' top: 'y'")});
}

TEST(Mvn, ConstantsBecomeZero) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures =
        evaluate(mvn({2, 1, 2, 2}, ""), {{"x", {3, 3, 3, 3, 7, 7, 7, 7}}}, caffe::TRAIN, *device);
    EXPECT_THAT(figures["y"], Each(0));
  }
}

TEST(Mvn, Refusals) { EXPECT_THAT(refusal(mvn({2, 3, 4, 5, 6}, "")), HasSubstr("1 to 4 axes")); }

}  // namespace
}  // namespace cafetiere
