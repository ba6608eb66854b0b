// SPDX-License-Identifier: Apache-2.0
#include "core/base/bfloat16.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace cafetiere {
namespace {

float float_of(uint32_t bits) { return std::bit_cast<float>(bits); }

TEST(Bfloat16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(to_bfloat16(1.F), 0x3f80);
  EXPECT_EQ(to_bfloat16(float_of(0x3f807fff)), 0x3f80) << "below the middle";
  EXPECT_EQ(to_bfloat16(float_of(0x3f808000)), 0x3f80) << "the middle, above an even one";
  EXPECT_EQ(to_bfloat16(float_of(0x3f808001)), 0x3f81) << "above the middle";
  EXPECT_EQ(to_bfloat16(float_of(0x3f818000)), 0x3f82) << "the middle, above an odd one";
  EXPECT_EQ(to_bfloat16(float_of(0xbf818000)), 0xbf82);
  EXPECT_EQ(to_bfloat16(float_of(0x3fffffff)), 0x4000) << "carries into the exponent";
  EXPECT_EQ(to_bfloat16(-0.F), 0x8000);
  EXPECT_EQ(to_bfloat16(float_of(0x00018000)), 0x0002) << "a denormal";
}

TEST(Bfloat16, KeepsInfinitiesAndNaNs) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(to_bfloat16(kInfinity), 0x7f80);
  EXPECT_EQ(to_bfloat16(-kInfinity), 0xff80);
  EXPECT_EQ(to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  for (const uint32_t nan : {0x7f800001U, 0x7fffffffU, 0xffc00000U}) {
    EXPECT_TRUE(std::isnan(from_bfloat16(to_bfloat16(float_of(nan))))) << std::hex << nan;
  }
}

TEST(Bfloat16, EveryOneSurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_bfloat16(uint16_t(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(to_bfloat16(value), bits);
  }
}

}  // namespace
}  // namespace cafetiere
