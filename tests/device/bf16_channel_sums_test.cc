// SPDX-License-Identifier: Apache-2.0
// Sums of channels by vectors beside the same sums one number at a time.
#include "core/device/cpu/bf16_channel_sums.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <vector>

#include "core/base/bfloat16.h"
#include "core/device/isa.h"

namespace cafetiere::bf16 {
namespace {

using Floats = std::vector<float>;
using Numbers = std::vector<uint16_t>;

Numbers normal_numbers(int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0.3F);
  Numbers numbers(static_cast<size_t>(count));
  for (uint16_t& n : numbers) n = to_bfloat16(normal(random));
  return numbers;
}

template <class Term>
Floats one_by_one(int64_t rows, int64_t channels, const Term& term) {
  Floats sums;
  for (int64_t c = 0; c < channels; ++c) {
    double total = 0;
    for (int64_t row = 0; row < rows; row += 16) {
      float run = 0;
      for (int64_t r = row; r < std::min(rows, row + 16); ++r) run += term(r * channels + c, c);
      total += double(run);
    }
    sums.push_back(float(total));
  }
  return sums;
}

void check(SumChannels sum, int64_t rows, int64_t channels) {
  const Numbers x = normal_numbers(rows * channels, 1), y = normal_numbers(rows * channels, 2);
  const auto at = [](const Numbers& of, int64_t i) { return from_bfloat16(of[size_t(i)]); };
  Floats sums(static_cast<size_t>(channels)), others(sums), centre(sums);
  ChannelSums of{.x = x.data(), .rows = rows, .channels = channels, .sums = sums.data()};
  sum(of);
  EXPECT_EQ(sums, one_by_one(rows, channels, [&](int64_t i, int64_t) { return at(x, i); }));
  for (int64_t c = 0; c < channels; ++c) centre[size_t(c)] = float(c % 7) * 0.25F;
  of.centre = centre.data();
  sum(of);
  EXPECT_EQ(sums, one_by_one(rows, channels, [&](int64_t i, int64_t c) {
              const float d = at(x, i) - centre[size_t(c)];
              return d * d;
            }));
  of.y = y.data(), of.products = others.data();
  sum(of);
  EXPECT_EQ(others, one_by_one(rows, channels, [&](int64_t i, int64_t c) {
              return at(x, i) * (at(y, i) - centre[size_t(c)]);
            }));
  of.centre = nullptr;
  sum(of);
  EXPECT_EQ(sums, one_by_one(rows, channels, [&](int64_t i, int64_t) { return at(x, i); }));
  EXPECT_EQ(others,
            one_by_one(rows, channels, [&](int64_t i, int64_t) { return at(x, i) * at(y, i); }));
}

TEST(Bf16ChannelSums, AreThoseOfOneNumberAtATime) {
  for (const auto& [rows, channels] :
       {std::array<int64_t, 2>{1, 1}, {40, 20}, {16, 64}, {33, 135}, {7, 1100}}) {
    SCOPED_TRACE(testing::Message() << rows << " x " << channels);
    check(sum_channels_plainly, rows, channels);
    if (has_wide_vectors(instruction_set())) check(sum_channels_512, rows, channels);
  }
}

}  // namespace
}  // namespace cafetiere::bf16
