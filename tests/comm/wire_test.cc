// SPDX-License-Identifier: Apache-2.0
// The formats of 16 bits against their definitions, and the exchanges that use them.
#include "core/comm/wire.h"

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "core/base/arena_block.h"
#include "core/comm/shard_tree.h"
#include "ranks.h"

namespace cafetiere::test {
namespace {

/// The value of a format with `mantissa` fraction bits and exponents down to `least`, above which
/// `limit` and more become infinite, that lies nearest to `value`; ties go to the even one.
double nearest(float value, int mantissa, int least, double limit) {
  if (!std::isfinite(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), least);
  const double unit = std::ldexp(1.0, exponent - mantissa);
  const double rounded = std::nearbyint(static_cast<double>(value) / unit) * unit;
  return std::abs(rounded) >= limit ? std::copysign(INFINITY, value) : rounded;
}

double reference(Wire wire, float value) {
  return wire == Wire::kBfloat16 ? nearest(value, 7, -126, std::ldexp(1.0, 128))
                                 : nearest(value, 10, -14, 65536);
}

float travelled(Wire wire, float value) {
  // 8 and more values take the vector path, fewer the scalar one: both must agree.
  float many[9], one = value;
  std::fill(std::begin(many), std::end(many), value);
  round_to_wire(wire, many, 9);
  round_to_wire(wire, &one, 1);
  for (float v : many) EXPECT_EQ(std::bit_cast<uint32_t>(v), std::bit_cast<uint32_t>(one));
  return one;
}

class WireTest : public testing::TestWithParam<Wire> {};
INSTANTIATE_TEST_SUITE_P(Wires, WireTest, testing::Values(Wire::kBfloat16, Wire::kFloat16),
                         [](const auto& info) {
                           return info.param == Wire::kBfloat16 ? "Bfloat16" : "Float16";
                         });

TEST_P(WireTest, RoundsToTheNearestAndTiesToEven) {
  std::mt19937 random(1);
  for (int i = 0; i < 300'000; ++i) {
    const float value = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (std::isnan(value)) continue;
    const float got = travelled(GetParam(), value);
    ASSERT_EQ(static_cast<double>(got), reference(GetParam(), value)) << value;
    ASSERT_EQ(std::signbit(got), std::signbit(value));
  }
}

TEST_P(WireTest, EveryNumberOfTheFormatComesBackAsItself) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto number = static_cast<uint16_t>(bits);
    float wide;
    uint16_t back;
    widen(GetParam(), &number, 1, &wide);
    narrow(GetParam(), &wide, 1, &back);
    if (std::isnan(wide)) {
      float again;
      widen(GetParam(), &back, 1, &again);
      ASSERT_TRUE(std::isnan(again)) << bits;
    } else {
      ASSERT_EQ(back, number);
    }
  }
}

TEST_P(WireTest, OneByOneIsAsEightAtOnce) {
  for (uint32_t bits = 0; bits < 65536; bits += 8) {
    uint16_t eight[8];
    std::iota(std::begin(eight), std::end(eight), static_cast<uint16_t>(bits));
    float wide[8];
    widen(GetParam(), eight, 8, wide);
    for (int i = 0; i < 8; ++i) {
      float one;
      widen(GetParam(), &eight[i], 1, &one);
      ASSERT_EQ(std::bit_cast<uint32_t>(one), std::bit_cast<uint32_t>(wide[i])) << eight[i];
    }
  }
}

TEST_P(WireTest, BetweenAllNeighboursTheHalfwayPointDecides) {
  const uint16_t infinite = GetParam() == Wire::kBfloat16 ? 0x7f80 : 0x7c00;
  for (uint16_t number = 0; number + 1 < infinite; ++number) {
    const uint16_t neighbours[] = {number, static_cast<uint16_t>(number + 1)};
    float wide[2];
    widen(GetParam(), neighbours, 2, wide);
    const float halfway = wide[0] + (wide[1] - wide[0]) / 2;
    for (float value :
         {std::nextafter(halfway, wide[0]), halfway, std::nextafter(halfway, wide[1])}) {
      ASSERT_EQ(travelled(GetParam(), value), reference(GetParam(), value)) << value;
      ASSERT_EQ(travelled(GetParam(), -value), reference(GetParam(), -value)) << value;
    }
  }
}

TEST_P(WireTest, HalfwayAndSpecialValues) {
  using Limits = std::numeric_limits<float>;
  for (float value : {1 + 0x1p-8f, 1 + 3 * 0x1p-8f, 1 + 0x1p-11f, 1 + 3 * 0x1p-11f, 65504.f,
                      65519.f, 65520.f, 0x1p-24f, 0x1p-25f, 0x1.8p-25f, 0x1.fp-15f, Limits::max(),
                      Limits::min(), Limits::denorm_min(), Limits::infinity(), 0.f}) {
    for (float signed_value : {value, -value}) {
      EXPECT_EQ(travelled(GetParam(), signed_value), reference(GetParam(), signed_value));
    }
  }
  EXPECT_TRUE(std::isnan(travelled(GetParam(), Limits::quiet_NaN())));
  // A NaN whose payload lies in the low bits only, and the one that rounding would carry over.
  EXPECT_TRUE(std::isnan(travelled(GetParam(), std::bit_cast<float>(0x7f800001u))));
  EXPECT_TRUE(std::isnan(travelled(GetParam(), std::bit_cast<float>(0x7fffffffu))));
}

std::vector<float> random_floats(int s, size_t floats) {
  std::mt19937 random(static_cast<unsigned>(s));
  std::uniform_real_distribution<float> value(-1, 1);
  std::vector<float> values(floats);
  for (float& v : values) v = value(random);
  return values;
}

TEST_P(WireTest, AllRanksEndWithTheSameBitsNearTheSum) {
  // Below and above the size up to which everything goes to all, and with an odd tail.
  for (size_t floats : {size_t{7}, size_t{1000}, 5 * kArenaBlock + 77, size_t{300'001}}) {
    for (int ranks : {1, 2, 3, 4}) {
      const int shards = ranks + 1;
      std::vector<double> exact(floats, 0);
      for (int s = 0; s < shards; ++s) {
        const auto values = random_floats(s, floats);
        for (size_t i = 0; i < floats; ++i) exact[i] += values[i];
      }
      std::vector<std::vector<float>> arenas(ranks, std::vector<float>(floats));
      auto groups = make_local_groups(ranks);
      expect_ok(on_ranks(ranks, [&](int rank) -> Status {
        TreeSum sum(shards_of_rank(rank, ranks, shards), shards, floats, nullptr);
        for (int s = sum.range().begin; s < sum.range().end; ++s) {
          arenas[rank] = random_floats(s, floats);
          CFT_TRY(sum.add(arenas[rank]));
        }
        return all_reduce(groups[rank].get(), sum, arenas[rank], GetParam());
      }));
      const double precision = GetParam() == Wire::kBfloat16 ? 0x1p-8 : 0x1p-11;
      for (size_t i = 0; i < floats; ++i) {
        ASSERT_NEAR(arenas[0][i], exact[i], 2 * shards * precision);
        for (const auto& arena : arenas) ASSERT_EQ(arena[i], arenas[0][i]) << "of element " << i;
      }
    }
  }
}

TEST_P(WireTest, GatheringRoundsTheOwnSliceToo) {
  const size_t floats = 2 * kArenaBlock + 5;
  const auto slices = even_slices(floats, 2);
  std::vector<std::vector<float>> arenas(2, random_floats(1, floats));
  std::vector<float> expected = arenas[0];
  round_to_wire(GetParam(), expected.data(), floats);
  auto groups = make_tcp_groups(2);
  expect_ok(on_ranks(2, [&](int rank) {
    return all_gather_slices(groups[rank].get(), arenas[rank], slices, GetParam());
  }));
  EXPECT_EQ(arenas[0], expected);
  EXPECT_EQ(arenas[1], expected);
}

}  // namespace
}  // namespace cafetiere::test
