// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

TEST(Mish, Formula) {
  const auto gate = [](double x) { return std::tanh(x > 30 ? x : std::log1p(std::exp(x))); };
  check_activation(
      {"Mish", "", [=](double x) { return x * gate(x); },
       [=](double x) { return gate(x) + x * (1 - gate(x) * gate(x)) / (1 + std::exp(-x)); }});
}

}  // namespace
}  // namespace cafetiere
