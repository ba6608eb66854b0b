// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

TEST(SeLu, Formula) {
  const auto check = [](const std::string& fields, double lambda, double alpha) {
    check_activation({"SeLu", fields,
                      [=](double x) { return lambda * (x > 0 ? x : alpha * std::expm1(x)); },
                      [=](double x) { return lambda * (x > 0 ? 1 : alpha * std::exp(x)); }});
  };
  check("", 1.050700987, 1.67326324);
  check("selu_param { lambda: 2 alpha: 0.5 }", 2, 0.5);
}

}  // namespace
}  // namespace cafetiere
