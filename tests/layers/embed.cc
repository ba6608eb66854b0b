// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string embed(const std::vector<int64_t>& dims, const std::string& fields) {
  return input("label", dims) +
         layer("Embed", "bottom: 'label' top: 'y'", "embed_param { " + fields + " }");
}

TEST(Embed, Gradients) {
  check_layer({.layers = embed({4, 3}, "input_dim: 7 num_output: 5"), .labels = 7});
  check_layer({.layers = embed({6}, "input_dim: 3 num_output: 4 bias_term: false"), .labels = 3});
}

TEST(Embed, ManyRows) {
  check_layer({.layers = embed({4, 50}, "input_dim: 500 num_output: 96"),
               .batches = {3},
               .labels = 500,
               .numeric = false});
}

TEST(Embed, TablesMayBeShared) {
  const std::string fields =
      "param { name: 'table' } embed_param { input_dim: 4 num_output: 2 "
      "bias_term: false }";
  check_layer({.layers = input("label", {5}) +
                         layer("Embed", "name: 'one' bottom: 'label' top: 'y'", fields) +
                         layer("Embed", "name: 'two' bottom: 'label' top: 'z'", fields),
               .labels = 4});
}

TEST(Embed, IndicesBeyondTheTableGiveTheBias) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    Figures figures = evaluate(embed({4}, "input_dim: 3 num_output: 1"),
                               {{"label", {-1, 3, nan, 2}}}, caffe::TRAIN, *device);
    EXPECT_THAT(figures["y"], ElementsAre(0.5, 0.5, 0.5, 1));
  }
}

TEST(Embed, Refusals) {
  EXPECT_THAT(refusal(embed({4}, "input_dim: 3")), HasSubstr("num_output must be above 0"));
  EXPECT_THAT(refusal(embed({4}, "num_output: 3")), HasSubstr("input_dim must be above 0"));
}

TEST(Embed, IndicesHaveNoGradient) {
  const auto ref = make_ref_device();
  const Figures figures =
      evaluate(embed({2}, "input_dim: 3 num_output: 2"), {}, caffe::TRAIN, *ref);
  EXPECT_TRUE(figures.contains("L[0] diff"));
  EXPECT_FALSE(figures.contains("label diff"));
}

}  // namespace
}  // namespace cafetiere
