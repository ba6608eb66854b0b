// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

TEST(HardSwish, Formula) {
  check_activation({"HardSwish", "",
                    [](double x) { return x * std::fmin(std::fmax(x / 6 + 0.5, 0), 1); },
                    [](double x) { return x > 3    ? 1
                                          : x < -3 ? 0
                                                   : x / 3 + 0.5; }});
}

}  // namespace
}  // namespace cafetiere
