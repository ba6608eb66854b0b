// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

TEST(Sigmoid, Formula) {
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  check_activation({"Sigmoid", "", sigmoid, [=](double x) { return sigmoid(x) * sigmoid(-x); }});
}

}  // namespace
}  // namespace cafetiere
