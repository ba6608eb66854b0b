// SPDX-License-Identifier: Apache-2.0
#include "core/graph/filler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "core/model/prototxt.h"
#include "tests/support/npz.h"

namespace cafetiere {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;
using Floats = std::vector<float>;

struct Filled {
  Status status;
  Floats values;
};

/// Fills `shape` with a filler given as text.
Filled fill_with(const std::string& text, const Shape& shape, uint32_t seed = 1701) {
  auto net = parse_net("layer { convolution_param { weight_filler { " + text + " } } }", "filler");
  EXPECT_TRUE(net.ok()) << net.status().message();
  Random rng(seed);
  Filled filled{{}, Floats(static_cast<size_t>(shape.count()))};
  filled.status =
      fill(net->param.layer(0).convolution_param().weight_filler(), shape, filled.values, rng);
  return filled;
}

double mean_square(const Floats& values) {
  double sum = 0;
  for (float x : values) sum += static_cast<double>(x) * x;
  return sum / static_cast<double>(values.size());
}

TEST(Filler, ConstantAndUniformStayInTheirRange) {
  EXPECT_THAT(fill_with("value: 2.5", {3, 4}).values, Each(2.5F));
  const Floats values = fill_with("type: 'uniform' min: -1 max: 3", {100, 100}).values;
  EXPECT_GE(*std::min_element(values.begin(), values.end()), -1);
  EXPECT_LE(*std::max_element(values.begin(), values.end()), 3);
  EXPECT_NEAR(std::accumulate(values.begin(), values.end(), 0.0) / 10000, 1, 0.05);
}

TEST(Filler, ScaleFollowsTheFan) {
  const Shape shape = {50, 20, 5, 5};  // fan in 500, fan out 1250
  EXPECT_NEAR(mean_square(fill_with("type: 'xavier'", shape).values), 1.0 / 500, 1e-4);
  EXPECT_NEAR(mean_square(fill_with("type: 'xavier' variance_norm: FAN_OUT", shape).values),
              1.0 / 1250, 4e-5);
  EXPECT_NEAR(mean_square(fill_with("type: 'msra' variance_norm: AVERAGE", shape).values),
              2.0 / 875, 1e-4);
  EXPECT_NEAR(mean_square(fill_with("type: 'gaussian' std: 0.1", shape).values), 0.01, 3e-4);
}

TEST(Filler, SparseGaussianKeepsItsShare) {
  const Floats values = fill_with("type: 'gaussian' std: 1 sparse: 5", {50, 400}).values;
  const auto zeros = std::count(values.begin(), values.end(), 0.0F);
  EXPECT_NEAR(static_cast<double>(zeros) / 20000, 0.9, 0.01);
}

TEST(Filler, UnitBallSlicesSumToOne) {
  const Floats values = fill_with("type: 'positive_unitball'", {4, 30}).values;
  for (auto slice = values.begin(); slice != values.end(); slice += 30) {
    EXPECT_NEAR(std::accumulate(slice, slice + 30, 0.0), 1, 1e-6);
  }
}

TEST(Filler, BilinearIsATentInEveryPlane) {
  const Floats values = fill_with("type: 'bilinear'", {2, 1, 4, 4}).values;
  const Floats row = {0.25F, 0.75F, 0.75F, 0.25F};
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_FLOAT_EQ(values[i], row[i % 4] * row[i / 4 % 4]);
  }
}

TEST(Filler, BilinearEqualsTheReference) {
  const std::string path = std::string(CFT_GOLDEN_DIR) + "/layers/deconv_bilinear.npz";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "no golden figures here";
  const NpyArray weights = read_npz(path).at("param_0");
  EXPECT_EQ(fill_with("type: 'bilinear'", Shape(weights.shape)).values, weights.values);
}

TEST(Filler, TheSameSeedGivesTheSameValuesAndTheStreamGoesOn) {
  EXPECT_EQ(fill_with("type: 'msra'", {7, 9}, 3).values,
            fill_with("type: 'msra'", {7, 9}, 3).values);
  EXPECT_NE(fill_with("type: 'msra'", {7, 9}, 3).values,
            fill_with("type: 'msra'", {7, 9}, 4).values);
  Random rng(5489);
  EXPECT_EQ(rng.next(), 3499211612U);  // the published first output of mt19937
  Floats first(4);
  Floats second(4);
  rng.uniform(0, 1, first);
  rng.uniform(0, 1, second);
  EXPECT_NE(first, second);
}

TEST(Filler, RefusesWhatCannotWork) {
  EXPECT_THAT(fill_with("type: 'xaver'", {2, 2}).status.message(),
              HasSubstr("Unknown filler name: xaver"));
  EXPECT_THAT(fill_with("type: 'xaver'", {2, 2}).status.message(), HasSubstr("mean \"xavier\""));
  EXPECT_THAT(fill_with("type: 'gaussian' std: 0", {2}).status.message(), HasSubstr("std > 0"));
  EXPECT_THAT(fill_with("type: 'gaussian' sparse: 3", {2}).status.message(), HasSubstr("sparse 3"));
  EXPECT_THAT(fill_with("type: 'uniform' min: 2", {2}).status.message(), HasSubstr("min <= max"));
  EXPECT_THAT(fill_with("sparse: 1", {2}).status.message(), HasSubstr("gaussian fillers only"));
  EXPECT_THAT(fill_with("type: 'bilinear'", {1, 1, 2, 3}).status.message(), HasSubstr("square"));
  EXPECT_THAT(fill_with("type: 'msra'", Shape{}).status.message(), HasSubstr("at least one axis"));
  EXPECT_FALSE(fill_with("", {0, 3}).status.ok());
}

}  // namespace
}  // namespace cafetiere
