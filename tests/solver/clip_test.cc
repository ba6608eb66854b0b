// SPDX-License-Identifier: Apache-2.0
#include "core/solver/clip.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace cafetiere {
namespace {

TEST(Clip, SumsOfBlocksDoNotDependOnWhereASliceStarts) {
  std::vector<float> values(3 * kNormBlock + 5);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = 0.001F * static_cast<float>(i % 977) - 0.3F;
  std::vector<double> all(norm_blocks(values.size()));
  ASSERT_EQ(all.size(), 4U);
  block_square_sums(values, all);

  std::vector<double> sliced(4);
  const std::span<const float> span(values);
  block_square_sums(span.first(2 * kNormBlock), std::span(sliced).first(2));
  block_square_sums(span.subspan(2 * kNormBlock), std::span(sliced).subspan(2));
  EXPECT_EQ(all, sliced);

  double expected = 0;
  for (float x : values) expected += static_cast<double>(x) * x;
  EXPECT_NEAR(tree_sum(all), expected, 1e-9 * expected);
}

TEST(Clip, TreeSplitsAtTheLargestPowerOfTwoBelow) {
  EXPECT_EQ(tree_sum({}), 0);
  const std::vector<double> terms = {1, 1e-16, 1e-16, 1e-16, 1e-16};
  const double left = (terms[0] + terms[1]) + (terms[2] + terms[3]);
  EXPECT_EQ(tree_sum(terms), left + terms[4]);
  EXPECT_NE(tree_sum(terms), std::accumulate(terms.rbegin(), terms.rend(), 0.0));
}

TEST(Clip, ScalesOnlyWhatIsTooLong) {
  EXPECT_EQ(clip_factor(100, -1), 1.0F);
  EXPECT_EQ(clip_factor(100, 10), 1.0F);
  EXPECT_EQ(clip_factor(100, 5), 0.5F);
  EXPECT_EQ(clip_factor(0, 0), 1.0F);
}

}  // namespace
}  // namespace cafetiere
