// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

TEST(ReLU6, Formula) {
  check_activation({"ReLU6", "", [](double x) { return std::fmin(std::fmax(x, 0), 6); },
                    [](double x) { return x > 0 && x < 6 ? 1.0 : 0.0; }});
}

// As some forks have it.
TEST(ReLU6, WithASlope) {
  check_activation({"ReLU6", "relu6_param { negative_slope: 0.25 }",
                    [](double x) { return x < 0 ? x / 4 : std::fmin(x, 6); },
                    [](double x) { return x < 0   ? 0.25
                                          : x < 6 ? 1.0
                                                  : 0.0; }});
}

}  // namespace
}  // namespace cafetiere
