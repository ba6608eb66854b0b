// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers/activation.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string log_of(const std::string& fields) {
  return input("x", {2, 3}) + layer("Log", "bottom: 'x' top: 'y'", fields);
}

TEST(Log, Formula) {
  const std::vector<double> points{-1.5, -1, -0.25, 0, 1e-3, 0.5, 2, 7, 40, 1e6};
  check_activation({"Log", "log_param { shift: 2 }", [](double x) { return std::log(2 + x); },
                    [](double x) { return 1 / (2 + x); }, points, false});
  check_activation({"Log", "log_param { base: 10 scale: 0.5 shift: 3 }",
                    [](double x) { return std::log10(0.5 * x + 3); },
                    [](double x) { return 0.5 / (0.5 * x + 3) / std::log(10); }, points, false});
}

TEST(Log, Refusals) {
  EXPECT_THAT(refusal(log_of("log_param { base: 1 }")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("base above 0 that is not 1")));
  EXPECT_THAT(refusal(log_of("log_param { base: 0 }")), HasSubstr("base above 0"));
}

}  // namespace
}  // namespace cafetiere
