// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string threshold(const std::string& fields) {
  return input("x", {4}) + layer("Threshold", "bottom: 'x' top: 'y' propagate_down: false", fields);
}

TEST(Threshold, Values) {
  const Figures in{{"x", {-1, 0, 0.25F, 2}}};
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const auto y = [&](const std::string& fields) {
      return evaluate(threshold(fields), in, caffe::TEST, *device)["y"];
    };
    EXPECT_THAT(y(""), ElementsAre(0, 0, 1, 1));
    EXPECT_THAT(y("threshold_param { threshold: 0.25 }"), ElementsAre(0, 0, 0, 1));
  }
}

TEST(Threshold, HasNoGradient) {
  auto net =
      TestNet::build(input("x", {4}) + layer("Threshold", "bottom: 'x' top: 'y'"), caffe::TRAIN);
  ASSERT_TRUE(net.ok());
  const auto ref = make_ref_device();
  EXPECT_THAT((*net)->plan(*ref, 0).status().message(),
              HasSubstr("layer 'L': a Threshold layer has no gradient"));
}

}  // namespace
}  // namespace cafetiere
