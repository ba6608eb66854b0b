// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string layer_norm(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("x", dims) +
         layer("LayerNorm", "bottom: 'x' top: 'y'", "layer_norm_param { " + fields + " }");
}

TEST(LayerNorm, Gradients) {
  check_layer({layer_norm({2, 3, 6}, "")});
  check_layer({layer_norm({3, 8}, "eps: 0.1")});
  check_layer({layer_norm({2, 3, 2, 4}, "axis: 1")});
  check_layer({layer_norm({2, 3, 6}, "axis: 2 scale_bias: false")});
}

TEST(LayerNorm, Figures) {
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    const Figures y = evaluate(layer_norm({2, 4}, "eps: 0 scale_bias: false"),
                               {{"x", {1, 1, 3, 3, -5, 5, 5, -5}}}, caffe::TEST, *device);
    EXPECT_THAT(y.at("y"), ElementsAre(-1, -1, 1, 1, -1, 1, 1, -1));
  }
}

// A fresh layer changes nothing but mean and variance.
TEST(LayerNorm, BlobsBeginWithOneAndZero) {
  auto net = TestNet::build(layer_norm({2, 3, 4}, "axis: 1"), caffe::TEST);
  ASSERT_TRUE(net.ok()) << net.status().message();
  const auto& params = (*net)->graph().params();
  ASSERT_EQ(params.size(), 2U);
  EXPECT_EQ(params[0].shape, (Shape{3, 4}));
  EXPECT_EQ(params[0].filler.value(), 1);
  EXPECT_EQ(params[1].shape, (Shape{3, 4}));
  EXPECT_EQ(params[1].filler.value(), 0);
}

TEST(LayerNorm, Refusals) {
  EXPECT_THAT(refusal(layer_norm({2, 3}, "axis: 2")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("axis 2 is out of range")));
  EXPECT_THAT(refusal(layer_norm({2, 3}, "eps: -1")), HasSubstr("eps must not be negative"));
}

}  // namespace
}  // namespace cafetiere
