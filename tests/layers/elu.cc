// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

void check_elu(const std::string& fields, double alpha) {
  check_activation({"ELU", fields, [=](double x) { return x > 0 ? x : alpha * std::expm1(x); },
                    [=](double x) { return x > 0 ? 1 : alpha * std::exp(x); }});
}

TEST(ELU, Formula) {
  check_elu("", 1);
  check_elu("elu_param { alpha: 0.5 }", 0.5);
  check_elu("elu_param { alpha: -0.5 }", -0.5);
}

}  // namespace
}  // namespace cafetiere
