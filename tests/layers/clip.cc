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

std::string clip(const std::string& fields) {
  return input("x", {2, 3}) + layer("Clip", "bottom: 'x' top: 'y'", fields);
}

TEST(Clip, Formula) {
  check_activation({"Clip", "clip_param { min: -0.9 max: 3 }",
                    [](double x) { return std::fmin(std::fmax(x, double(-0.9F)), 3); },
                    [](double x) { return x >= -0.9 && x <= 3 ? 1.0 : 0.0; }});
}

TEST(Clip, SlopeAtTheLimits) {
  check_activation({"Clip",
                    "clip_param { min: -2 max: 5 }",
                    [](double x) { return std::fmin(std::fmax(x, -2), 5); },
                    [](double x) { return x >= -2 && x <= 5 ? 1.0 : 0.0; },
                    {-2, 5}});
}

TEST(Clip, Refusals) {
  EXPECT_THAT(refusal(clip("")), AllOf(HasSubstr("net:2: layer 'L'"), HasSubstr("clip_param")));
  EXPECT_THAT(refusal(clip("clip_param { min: 1 max: 0 }")), HasSubstr("min <= max"));
}

}  // namespace
}  // namespace cafetiere
