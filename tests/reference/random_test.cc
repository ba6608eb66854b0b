// SPDX-License-Identifier: Apache-2.0
// Layers that draw random numbers, each library by its own generator: what can be compared is what
// the numbers may be and how often they occur.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/layers/harness.h"
#include "tests/reference/cases.h"
#include "tests/reference/own_net.h"
#include "tests/reference/reference.h"

namespace cafetiere {
namespace {

using parity::Arrays;

class ReferenceRandom : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!reference_is_there()) GTEST_SKIP() << "tools/reference_caffe has not been run";
  }
  TempDir folder_;
};

constexpr int kRows = 500, kColumns = 200, kCount = kRows * kColumns;

/// Both directions of a Dropout layer.
struct Dropped {
  std::vector<float> top, gradient;
};

/// What may be expected of one library's mask: kept values are scaled, the gradient is masked and
/// scaled alike, and the share that is kept is within five standard deviations.
void expect_dropout(const Dropped& got, const Arrays& in, float ratio) {
  const std::vector<float>&x = in.at("in_x"), &gradient = in.at("topdiff_y");
  const float scale = 1 / (1 - ratio);
  int kept = 0;
  for (size_t i = 0; i < size_t(kCount); ++i) {
    const bool keeps = got.top[i] != 0;
    kept += keeps ? 1 : 0;
    ASSERT_EQ(got.top[i], keeps ? x[i] * scale : 0) << i;
    ASSERT_EQ(got.gradient[i], keeps ? gradient[i] * scale : 0) << i;
  }
  const double p = 1 - double(ratio), deviation = std::sqrt(p * (1 - p) / kCount);
  EXPECT_NEAR(double(kept) / kCount, p, 5 * deviation);
}

TEST_F(ReferenceRandom, DropoutInTraining) {
  Draw draw(5);
  for (const float ratio : {0.125F, 0.3F, 0.5F, 0.9F}) {
    SCOPED_TRACE(ratio);
    const std::string path = folder_.path("dropout");
    write_text(path + ".prototxt",
               "state { phase: TRAIN } force_backward: true\n" + input("x", {kRows, kColumns}) +
                   layer("Dropout", "bottom: 'x' top: 'y'",
                         fmt::format("dropout_param {{ dropout_ratio: {} }}", ratio)));
    const Arrays in = {{"in_x", draw.values("x", kCount, 1)},
                       {"topdiff_y", draw.values("x", kCount, 1)}};
    parity::write_arrays(path + ".in", in);
    ASSERT_EQ(run_reference({"layers", folder_.path(""), "dropout"}), "");
    const Arrays out = parity::read_arrays(path + ".out");
    OwnNet net(path + ".prototxt", "TRAIN");
    std::ranges::copy(in.at("in_x"), net.data("x").begin());
    net.forward();
    std::ranges::copy(in.at("topdiff_y"), net.diff("y").begin());
    net.backward();
    const auto y = net.data("y"), dx = net.diff("x");
    expect_dropout({{y.begin(), y.end()}, {dx.begin(), dx.end()}}, in, ratio);
    expect_dropout({out.at("top_y"), out.at("indiff_x")}, in, ratio);
  }
}

/// Mean, standard deviation and extremes.
struct Moments {
  double mean = 0, deviation = 0, least = 0, largest = 0;
  explicit Moments(std::span<const float> values) {
    const auto n = double(values.size());
    mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
    for (float v : values) deviation += (double(v) - mean) * (double(v) - mean) / n;
    deviation = std::sqrt(deviation);
    const auto [low, high] = std::ranges::minmax(values);
    least = double(low), largest = double(high);
  }
};

TEST_F(ReferenceRandom, DummyDataIsDrawnAnewFromTheSameDistribution) {
  const std::pair<const char*, bool> fillers[] = {{"type: 'uniform' min: -2 max: 3", true},
                                                  {"type: 'xavier'", true},
                                                  {"type: 'gaussian' mean: 1 std: 2", false},
                                                  {"type: 'msra'", false},
                                                  {"type: 'positive_unitball'", false}};
  for (const auto& [filler, bounded] : fillers) {
    SCOPED_TRACE(filler);
    const std::string path = folder_.path("dummy");
    write_text(path + ".prototxt",
               "state { phase: TRAIN }\n" +
                   layer("DummyData", "top: 'y'",
                         fmt::format("dummy_data_param {{ shape {{ dim: {} dim: {} }} "
                                     "data_filler {{ {} }} }}",
                                     kRows, kColumns, filler)));
    parity::write_arrays(path + ".in", {{"passes", {2}}});
    ASSERT_EQ(run_reference({"data", path}), "");
    const std::vector<float> both = parity::read_arrays(path + ".out").at("top_y");
    ASSERT_EQ(both.size(), size_t(2 * kCount));
    const std::vector<float> second(both.begin() + kCount, both.end());
    OwnNet net(path + ".prototxt", "TRAIN");
    net.forward();
    const std::vector<float> first_here(net.data("y").begin(), net.data("y").end());
    net.forward();
    const Moments here(net.data("y")), there(second);
    EXPECT_FALSE(std::ranges::equal(first_here, net.data("y")));
    EXPECT_FALSE(std::equal(second.begin(), second.end(), both.begin()));
    // Five standard errors of a difference of two means, and of two deviations.
    const double error = 5 * there.deviation * std::sqrt(2.0 / kCount);
    EXPECT_NEAR(here.mean, there.mean, error);
    EXPECT_NEAR(here.deviation, there.deviation, error);
    if (!bounded) continue;
    const double width = there.largest - there.least;
    EXPECT_NEAR(here.least, there.least, 1e-3 * width);
    EXPECT_NEAR(here.largest, there.largest, 1e-3 * width);
  }
}

}  // namespace
}  // namespace cafetiere
