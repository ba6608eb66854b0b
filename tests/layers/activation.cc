// SPDX-License-Identifier: Apache-2.0
#include "tests/layers/activation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

void expect_near(float actual, double expected, double at, const std::string& what) {
  EXPECT_NEAR(actual, expected, 2e-6 * std::fabs(expected) + 2.5e-7) << what << " at " << at;
}

void check_formulas(const ActivationCase& c) {
  std::vector<double> points = c.points;
  points.push_back(std::numeric_limits<double>::quiet_NaN());
  auto net = TestNet::build(
      input("x", {int64_t(points.size())}) + layer(c.type, "bottom: 'x' top: 'y'", c.fields),
      caffe::TRAIN);
  ASSERT_TRUE(net.ok()) << net.status().message();
  const auto device = make_ref_device();
  auto plan = (*net)->plan(*device, 0);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  std::ranges::copy(points, (*plan)->inputs()[0].data);
  std::fill_n((*plan)->outputs()[0].diff, points.size(), 1.F);
  ThreadPool pool(1);
  EXPECT_TRUE((*plan)->run(pool, {}).ok());
  const float* y = (*plan)->outputs()[0].data;
  const float* slope = (*plan)->input_diffs()[0].data;
  for (size_t i = 0; i + 1 < points.size(); ++i) {
    const double x = double(float(points[i]));
    expect_near(y[i], c.value(x), x, c.type);
    expect_near(slope[i], c.slope(x), x, c.type + "'s slope");
  }
  EXPECT_TRUE(std::isnan(y[points.size() - 1])) << c.type << " hides a NaN";
}

}  // namespace

void check_activation(const ActivationCase& c) {
  check_formulas(c);
  const std::string apart = layer(c.type, "bottom: 'x' top: 'y'", c.fields);
  check_layer({input("x", {2, 3, 4, 5}) + apart});
  check_layer({input("x", {7}) + apart});
  const std::string conv = "convolution_param { num_output: 4 kernel_size: 2 }";
  const std::string guard =
      c.whole_line ? "" : layer("AbsVal", "name: 'guard' bottom: 'y' top: 'y'");
  check_layer({.layers = input("x", {2, 3, 5, 4}) +
                         layer("Convolution", "name: 'a' bottom: 'x' top: 'y'", conv) + guard +
                         layer(c.type, "bottom: 'y' top: 'y'", c.fields) +
                         layer("Convolution", "name: 'b' bottom: 'y' top: 'z'", conv),
               .numeric = false});
}

}  // namespace cafetiere
