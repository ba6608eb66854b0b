// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

void check_swish(const std::string& fields, double beta) {
  const auto sigmoid = [=](double x) { return 1 / (1 + std::exp(-beta * x)); };
  check_activation({"Swish", fields, [=](double x) { return x * sigmoid(x); },
                    [=](double x) { return sigmoid(x) + beta * x * sigmoid(x) * sigmoid(-x); }});
}

TEST(Swish, Formula) {
  check_swish("", 1);
  check_swish("swish_param { beta: 2.5 }", 2.5);
  check_swish("swish_param { beta: 0 }", 0);
}

}  // namespace
}  // namespace cafetiere
