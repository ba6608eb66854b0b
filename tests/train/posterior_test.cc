// SPDX-License-Identifier: Apache-2.0
// The posterior means of embeddings: how candidates are weighed, and which points are similar.

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "core/train/posterior_weights.h"
#include "core/train/similar_points.h"

namespace cafetiere {
namespace {

using testing::Each;
using testing::ElementsAre;

/// The weights of values that share two prototypes, given the logarithms of the likelihoods of these
/// and of their own rows.
std::vector<double> weights_for(const std::vector<float>& likelihood) {
  Candidates c{.values = int64_t(likelihood.size()) / 3, .prototypes = 2, .nearest = 2};
  for (int64_t v = 0; v < c.values; ++v) {
    c.near.push_back(0);
    c.near.push_back(1);
  }
  return posterior_weights(c, likelihood);
}

TEST(PosteriorWeights, AddUpToOneAndFollowTheLikelihoods) {
  const auto weight = weights_for({-10, -30, -50, -30, -10, -50, -700, -1000, -900});
  ASSERT_EQ(weight.size(), 9u);
  for (size_t v = 0; v < 3; ++v) {
    EXPECT_NEAR(weight[3 * v] + weight[3 * v + 1] + weight[3 * v + 2], 1, 1e-12);
  }
  EXPECT_GT(weight[0], 0.999);
  EXPECT_GT(weight[4], 0.999);
  EXPECT_GT(weight[6], 0.999);
}

TEST(PosteriorWeights, LearnHowOftenValuesAreLikeAPrototype) {
  std::vector<float> likelihood;
  for (int v = 0; v < 9; ++v) likelihood.insert(likelihood.end(), {-10, -60, -200});
  likelihood.insert(likelihood.end(), {-20, -20, -200});  // its rows do not tell
  const auto weight = weights_for(likelihood);
  EXPECT_GT(weight[27], 0.95);
}

TEST(PosteriorWeights, PreferTheOwnRowOnlyWhereManyRowsSpeakForIt) {
  const auto weight = weights_for({-10, -10, -8, -500, -510, -470});
  EXPECT_LT(weight[2], 0.5);  // by as much as it was fitted to them
  EXPECT_GT(weight[5], 0.999);
}

TEST(NearestMeans, AreInTheOrderOfTheirDistance) {
  const std::vector<float> means{0, 0, 10, 0, 0, 4, 0, -4};
  EXPECT_THAT(nearest_means(std::vector<float>{9, 0, 1, 3}, means, 2, 3),
              ElementsAre(1, 0, 2, 2, 0, 3));
  // The first of those equally near.
  EXPECT_THAT(nearest_means(std::vector<float>{0, 0}, means, 2, 3), ElementsAre(0, 2, 3));
}

TEST(SimilarPoints, AreThoseNearOneMean) {
  std::vector<float> points;
  for (int i = 0; i < 60; ++i) {
    const float around = float(i % 3) * 10, off = float(i) / 100;
    points.insert(points.end(), {around + off, -around});
  }
  const auto group = similar_points(points, 2, 12, 1);
  ASSERT_EQ(group.size(), 60u);
  for (size_t i = 0; i < group.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (i % 3 == j % 3) continue;
      EXPECT_NE(group[i], group[j]);
    }
  }
  EXPECT_EQ(group, similar_points(points, 2, 12, 1));
  EXPECT_THAT(similar_points(points, 2, 1, 1), Each(0));
}

}  // namespace
}  // namespace cafetiere
