// SPDX-License-Identifier: Apache-2.0
#include "core/base/philox.h"

#include <gtest/gtest.h>

namespace cafetiere {
namespace {

using Words = std::array<uint32_t, 4>;

// The published vectors of the Random123 library, "philox4x32 10".
TEST(Philox, GivesTheKnownAnswers) {
  EXPECT_EQ(Philox::block(0, {0, 0, 0, 0}),
            (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox::block(~uint64_t{0}, {~0u, ~0u, ~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox::block(0x299f31d0a4093822, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, IsAConstantExpression) {
  static_assert(Philox::block(0, {0, 0, 0, 0})[0] == 0x6627e8d5);
  static_assert(Philox::key(1, "a") != Philox::key(1, "b"));
  static_assert(Philox::key(1, "a") != Philox::key(2, "a"));
}

TEST(Philox, WordsMapToRanges) {
  EXPECT_EQ(Philox::below(0, 7), 0u);
  EXPECT_EQ(Philox::below(~0u, 7), 6u);
  EXPECT_EQ(Philox::unit(0), 0.0f);
  EXPECT_LT(Philox::unit(~0u), 1.0f);
}

}  // namespace
}  // namespace cafetiere
