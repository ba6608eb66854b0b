// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

TEST(GELU, Formula) {
  const auto phi = [](double x) { return std::erfc(-x / std::sqrt(2)) / 2; };
  const auto density = [](double x) { return std::exp(-x * x / 2) / std::sqrt(2 * M_PI); };
  check_activation({"GELU", "", [=](double x) { return x * phi(x); },
                    [=](double x) { return phi(x) + x * density(x); }});
}

TEST(GELU, FormulaByTanh) {
  const double rate = std::sqrt(2 / M_PI);
  const auto t = [=](double x) { return std::tanh(rate * (x + 0.044715 * x * x * x)); };
  check_activation({"GELU", "gelu_param { approximate: TANH }",
                    [=](double x) { return x * (1 + t(x)) / 2; },
                    [=](double x) {
                      const double rise = rate * (1 + 3 * 0.044715 * x * x);
                      return (1 + t(x)) / 2 + x * (1 - t(x) * t(x)) * rise / 2;
                    }});
}

}  // namespace
}  // namespace cafetiere
