// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

void check_power(const std::string& fields, double power, double scale, double shift) {
  check_activation({"Power",
                    "power_param { " + fields + " }",
                    [=](double x) { return std::pow(shift + scale * x, power); },
                    [=](double x) {
                      const double factor = power * scale;
                      return factor == 0 ? 0 : factor * std::pow(shift + scale * x, power - 1);
                    },
                    {-1.75, -1, -0.25, 0, 1e-3, 0.5, 2, 7, 40},
                    false});
}

TEST(Power, Formula) {
  check_power("", 1, 1, 0);
  check_power("scale: -3 shift: 0.5", 1, -3, 0.5);
  check_power("power: 2 scale: 0.5 shift: 3", 2, 0.5, 3);
  check_power("power: 3", 3, 1, 0);
  check_power("power: 0.5 scale: 0.5 shift: 1", 0.5, 0.5, 1);
  check_power("power: -1.5 shift: 4", -1.5, 1, 4);
}

// Constants, whatever the base.
TEST(Power, OfNothing) {
  for (const std::string fields : {"power: 0", "scale: 0 shift: 1", "power: 0 scale: 0"}) {
    const LayerCase c{input("x", {2, 3}) +
                      layer("Power", "bottom: 'x' top: 'y'", "power_param { " + fields + " }")};
    check_layer(c);
    const auto ref = make_ref_device();
    EXPECT_EQ(evaluate(c.layers, {}, caffe::TRAIN, *ref)["y"], std::vector<float>(6, 1)) << fields;
  }
}

}  // namespace
}  // namespace cafetiere
