// SPDX-License-Identifier: Apache-2.0
// Lossy means: what they keep exactly, and that error feedback brings the rest.
#include "core/comm/compress.h"

#include <cmath>
#include <random>

#include "ranks.h"

namespace cafetiere::test {
namespace {

using Make = std::function<std::unique_ptr<Compressor>(Group*)>;

std::vector<float> random_values(size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> value;
  std::vector<float> values(count);
  for (float& v : values) v = value(random);
  return values;
}

/// Calls mean() once on each rank, whose gradients are `gradients`; every rank's result.
std::vector<std::vector<float>> means(std::vector<std::vector<float>> gradients, const Make& make) {
  const int ranks = static_cast<int>(gradients.size());
  auto groups = make_local_groups(ranks);
  expect_ok(
      on_ranks(ranks, [&](int rank) { return make(groups[rank].get())->mean(gradients[rank]); }));
  return gradients;
}

void expect_mean(const std::vector<std::vector<float>>& gradients, const Make& make) {
  const auto results = means(gradients, make);
  for (size_t i = 0; i < gradients[0].size(); ++i) {
    double sum = 0;
    for (const auto& g : gradients) sum += g[i];
    ASSERT_NEAR(results[0][i], sum / static_cast<double>(gradients.size()), 2e-5) << i;
  }
  for (const auto& r : results) EXPECT_EQ(r, results[0]);
}

TEST(TopK, DensityOneIsThePlainMean) {
  for (unsigned ranks : {1u, 2u, 3u}) {
    std::vector<std::vector<float>> gradients;
    for (unsigned r = 0; r < ranks; ++r) gradients.push_back(random_values(1001, r));
    expect_mean(gradients, [](Group* g) { return std::make_unique<TopK>(g, 1001, 1.0); });
  }
}

TEST(TopK, GivesTheGreatestAndKeepsTheRest) {
  TopK top(nullptr, 6, 0.5);
  std::vector<float> gradient = {1, -5, 2, 2, -2, 0};
  ASSERT_TRUE(top.mean(gradient).ok());
  EXPECT_EQ(gradient, (std::vector<float>{0, -5, 2, 2, 0, 0}));  // of equal ones the first
  EXPECT_EQ(std::vector<float>(top.error().begin(), top.error().end()),
            (std::vector<float>{1, 0, 0, 0, -2, 0}));
  gradient = {1, 0, 0, 0, -2, 0};
  ASSERT_TRUE(top.mean(gradient).ok());
  EXPECT_EQ(gradient[4], -4);
  EXPECT_EQ(gradient[0], 2);
}

TEST(PowerSgd, FullRankIsThePlainMean) {
  const MatrixRange matrix{5, 12, 20};
  std::vector<std::vector<float>> gradients;
  for (unsigned r = 0; r < 3; ++r) gradients.push_back(random_values(300, r));
  expect_mean(gradients, [&](Group* g) {
    return std::make_unique<PowerSgd>(g, 300, std::span(&matrix, 1), 12, 1);
  });
}

TEST(PowerSgd, MatricesOfLowRankComeThroughWhole) {
  // Two matrices of rank 2 with a bias between and behind; each rank has its own right factor.
  const std::vector<MatrixRange> matrices = {{0, 30, 40}, {1210, 50, 25}};
  const size_t floats = 1210 + 50 * 25 + 7;
  std::vector<std::vector<float>> gradients;
  for (unsigned r = 0; r < 2; ++r) {
    auto gradient = random_values(floats, 10 + r);
    for (const MatrixRange& m : matrices) {
      const auto left = random_values(m.rows * 2, 1), right = random_values(m.cols * 2, 2 + r);
      for (size_t i = 0; i < m.rows; ++i) {
        for (size_t j = 0; j < m.cols; ++j) {
          gradient[m.offset + i * m.cols + j] =
              left[2 * i] * right[2 * j] + left[2 * i + 1] * right[2 * j + 1];
        }
      }
    }
    gradients.push_back(gradient);
  }
  // A third column finds nothing left and must not disturb the others.
  for (int rank : {2, 3}) {
    expect_mean(gradients,
                [&](Group* g) { return std::make_unique<PowerSgd>(g, floats, matrices, rank, 1); });
  }
}

TEST(PowerSgd, TravelsInFewBytes) {
  const MatrixRange matrix{0, 1000, 800};
  const PowerSgd sgd(nullptr, 800'010, std::span(&matrix, 1), 4, 1);
  EXPECT_EQ(sgd.bytes(), (4 * 1800 + 10) * sizeof(float));
}

/// Minimises the mean over the ranks of |x - target_r|^2 / 2 with steps on lossy means; the
/// distance to the minimum that is left.
double distance_after(int steps, float rate, const Make& make) {
  const int ranks = 2;
  const size_t floats = 24 * 32 + 8;
  const std::vector<std::vector<float>> targets = {random_values(floats, 1),
                                                   random_values(floats, 2)};
  std::vector<std::vector<float>> x(ranks, std::vector<float>(floats, 0.f));
  auto groups = make_local_groups(ranks);
  expect_ok(on_ranks(ranks, [&](int rank) -> Status {
    const auto compressor = make(groups[rank].get());
    std::vector<float> gradient(floats);
    for (int step = 0; step < steps; ++step) {
      for (size_t i = 0; i < floats; ++i) gradient[i] = x[rank][i] - targets[rank][i];
      CFT_TRY(compressor->mean(gradient));
      for (size_t i = 0; i < floats; ++i) x[rank][i] -= rate * gradient[i];
    }
    return {};
  }));
  EXPECT_EQ(x[0], x[1]);
  double square = 0;
  for (size_t i = 0; i < floats; ++i) {
    square += std::pow(x[0][i] - 0.5 * (targets[0][i] + targets[1][i]), 2);
  }
  return std::sqrt(square / static_cast<double>(floats));
}

TEST(Compressor, ErrorFeedbackReachesTheMinimum) {
  const MatrixRange matrix{0, 24, 32};
  EXPECT_LT(distance_after(2500, 0.005f,
                           [&](Group* g) {
                             return std::make_unique<PowerSgd>(g, 24 * 32 + 8,
                                                               std::span(&matrix, 1), 2, 1);
                           }),
            0.02);
  EXPECT_LT(distance_after(2500, 0.005f,
                           [](Group* g) { return std::make_unique<TopK>(g, 24 * 32 + 8, 0.05); }),
            0.02);
}

TEST(Compressor, RefusesAnotherSize) {
  std::vector<float> five(5);
  EXPECT_EQ(TopK(nullptr, 4, 0.5).mean(five).code(), ErrorCode::kInternal);
  EXPECT_EQ(PowerSgd(nullptr, 4, {}, 2, 1).mean(five).code(), ErrorCode::kInternal);
}

}  // namespace
}  // namespace cafetiere::test
