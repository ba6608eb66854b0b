// SPDX-License-Identifier: Apache-2.0
#include "core/data/exact_sum.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace cafetiere {
namespace {

ExactSum sum_of(const std::vector<double>& numbers) {
  ExactSum sum;
  for (const double x : numbers) sum.add(x);
  return sum;
}

/// Numbers of all sizes and signs.
std::vector<double> wild_numbers(size_t count) {
  std::mt19937_64 random(7);
  std::vector<double> numbers;
  while (numbers.size() < count) {
    const double x = std::bit_cast<double>(random());
    if (std::isfinite(x)) numbers.push_back(x);
  }
  return numbers;
}

TEST(ExactSum, NothingIsRoundedAway) {
  const double huge = std::numeric_limits<double>::max();
  const double tiny = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(sum_of({huge, tiny, -huge}).value().high, tiny);
  EXPECT_EQ(sum_of({1e16, 1, -1e16, 1}).value().high, 2);
  EXPECT_EQ(sum_of({-3.5, 1.25}).value().high, -2.25);
  EXPECT_EQ(sum_of({}).value().high, 0);
  EXPECT_EQ(sum_of({huge, huge, -huge}).value().high, huge);
}

TEST(ExactSum, TheOrderAndTheSplitDoNotShow) {
  std::vector<double> numbers = wild_numbers(5000);
  const auto expected = sum_of(numbers).digits();
  std::mt19937 random(3);
  for (int parts = 1; parts < 6; ++parts) {
    std::shuffle(numbers.begin(), numbers.end(), random);
    std::vector<ExactSum> sums(static_cast<size_t>(parts));
    for (size_t i = 0; i < numbers.size(); ++i) sums[i % sums.size()].add(numbers[i]);
    ExactSum all;
    for (const ExactSum& sum : sums) all.add(ExactSum::of(sum.digits()));
    EXPECT_EQ(all.digits(), expected) << parts;
  }
}

TEST(ExactSum, NumbersAndTheirOppositesCancel) {
  ExactSum sum;
  for (const double x : wild_numbers(1000)) {
    sum.add(x);
    sum.add(-x);
  }
  EXPECT_EQ(sum.digits(), ExactSum().digits());
}

TEST(ExactSum, HighAndLowHaveMoreBitsThanADouble) {
  const ExactSum::Pair pair = sum_of({1, 0x1p-60, 0x1p-100}).value();
  EXPECT_EQ(pair.high, 1);
  EXPECT_EQ(pair.low, 0x1p-60 + 0x1p-100);
}

TEST(ExactSum, SquaresAreExact) {
  ExactSum sum;
  const double x = 1 + 0x1p-40;  // its square has 81 bits
  sum.add_square(x);
  sum.add(-1);
  sum.add(-0x1p-39);
  EXPECT_EQ(sum.value().high, 0x1p-80);
}

}  // namespace
}  // namespace cafetiere
