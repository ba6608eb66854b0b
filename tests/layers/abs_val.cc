// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"

namespace cafetiere {
namespace {

TEST(AbsVal, Formula) {
  check_activation({"AbsVal", "", [](double x) { return std::fabs(x); },
                    [](double x) { return x > 0 ? 1.0 : -1.0; }});
}

}  // namespace
}  // namespace cafetiere
