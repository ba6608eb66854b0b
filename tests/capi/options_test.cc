// SPDX-License-Identifier: Apache-2.0
#include "core/capi/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cafetiere::capi {
namespace {

using ::testing::HasSubstr;

/// What reading option "n" as a number from -5 to 100 gives.
Result<int64_t> number(const std::string& text) {
  CFT_ASSIGN(Options options, Options::parse(("{\"n\": " + text + "}").c_str()));
  const int64_t n = options.number("n", 7, -5, 100);
  CFT_TRY(options.done());
  return n;
}

TEST(Options, TakeWholeNumbersWithinTheirBounds) {
  EXPECT_EQ(*number("100"), 100);
  EXPECT_EQ(*number("-5"), -5);
  EXPECT_EQ(*number("null"), 7);
}

/// 2^64 - 1 would be -1 where it is taken for a number with a sign.
TEST(Options, RefuseNumbersOutsideOfThem) {
  for (const char* text : {"101", "-6", "18446744073709551615", "9223372036854775808", "1.0", "1e3",
                           "\"1\"", "99999999999999999999999"}) {
    EXPECT_THAT(number(text).status().message(), HasSubstr("whole number from -5 to 100")) << text;
  }
}

TEST(Options, NameTheKeyThatNobodyTook) {
  Options options = *Options::parse(R"({"treads": 3})");
  options.number("threads", 0, 0, 9);
  EXPECT_THAT(options.done().message(), HasSubstr("\"treads\"; did you mean \"threads\"?"));
}

}  // namespace
}  // namespace cafetiere::capi
