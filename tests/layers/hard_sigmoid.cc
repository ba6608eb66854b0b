// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

TEST(HardSigmoid, Formula) {
  check_activation({"HardSigmoid", "",
                    [](double x) { return std::fmin(std::fmax(x / 6 + 0.5, 0), 1); },
                    [](double x) { return std::fabs(x) < 3 ? 1.0 / 6 : 0; }});
}

}  // namespace
}  // namespace cafetiere
