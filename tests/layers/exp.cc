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

std::string exp_of(const std::string& fields) {
  return input("x", {2, 3}) + layer("Exp", "bottom: 'x' top: 'y'", fields);
}

TEST(Exp, Formula) {
  const std::vector<double> points{-90, -20, -3, -1, -0.25, 0, 1e-3, 0.5, 2, 7, 40};
  check_activation({"Exp", "", [](double x) { return std::exp(x); },
                    [](double x) { return std::exp(x); }, points});
  check_activation({"Exp", "exp_param { base: 2 scale: 0.5 shift: -3 }",
                    [](double x) { return std::exp2(0.5 * x - 3); },
                    [](double x) { return 0.5 * std::log(2) * std::exp2(0.5 * x - 3); }, points});
}

TEST(Exp, Refusals) {
  EXPECT_THAT(refusal(exp_of("exp_param { base: 0 }")),
              AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("base above 0")));
  EXPECT_THAT(refusal(exp_of("exp_param { base: -2 }")), HasSubstr("base above 0"));
}

}  // namespace
}  // namespace cafetiere
