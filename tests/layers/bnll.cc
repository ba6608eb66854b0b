// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

TEST(BNLL, Formula) {
  check_activation(
      {"BNLL", "",
       [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); },
       [](double x) { return 1 / (1 + std::exp(-x)); }});
}

}  // namespace
}  // namespace cafetiere
