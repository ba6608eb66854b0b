// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

TEST(TanH, Formula) {
  check_activation({"TanH", "", [](double x) { return std::tanh(x); },
                    [](double x) { return 1 - std::tanh(x) * std::tanh(x); }});
}

}  // namespace
}  // namespace cafetiere
