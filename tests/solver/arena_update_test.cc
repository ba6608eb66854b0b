// SPDX-License-Identifier: Apache-2.0
#include "core/solver/arena_update.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/solver/clip.h"

namespace cafetiere {
namespace {

using Floats = std::vector<float>;

// Three learned parameters, one across a border of blocks, and a statistic in a block of its own.
const std::vector<ParamSpan> kParams = {
    {0, 4090, 1, 1}, {4096, 10000, 2, 0.5F}, {14096, 16, 0, 1}, {16384, 8, 0, 0, true, 0.5F}};
constexpr int64_t kFloats = 16400, kLearned = 16384;

struct Arenas {
  Floats weights, gradient, first, second;

  void update(const ArenaUpdate& update, const std::vector<int64_t>& cuts, ThreadPool& pool) {
    UpdateStep step{.iter = 2, .rate = 0.1F, .gradient_scale = 0.5F, .passes = 2};
    std::vector<SquareNorms> norms;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      on_slice(cuts[i], cuts[i + 1], [&](const ArenaSlice& slice) {
        const auto more = update.prepare(step, slice, pool);
        norms.insert(norms.end(), more.begin(), more.end());
      });
    }
    if (update.needs_norms()) step.trust = update.trust_ratios(norms);
    for (size_t i = 0; i + 1 < cuts.size(); ++i) {
      on_slice(cuts[i], cuts[i + 1],
               [&](const ArenaSlice& slice) { update.apply(step, slice, pool); });
    }
  }

  template <class F>
  void on_slice(int64_t begin, int64_t end, F use) {
    const auto part = [&](Floats& arena) {
      return std::span(arena).subspan(size_t(begin), size_t(end - begin));
    };
    const std::vector<std::span<float>> history = {part(first), part(second)};
    use(ArenaSlice{begin, end, weights, part(gradient), history});
  }
};

Arenas start() {
  std::mt19937 engine(5);
  std::normal_distribution<float> normal;
  Arenas arenas;
  for (Floats* arena : {&arenas.weights, &arenas.gradient, &arenas.first, &arenas.second}) {
    for (int64_t i = 0; i < kFloats; ++i) arena->push_back(normal(engine));
  }
  for (float& square : arenas.second) square *= square;
  return arenas;
}

Result<ArenaUpdate> make(const std::string& type) {
  caffe::SolverParameter solver;
  solver.set_type(type);
  solver.set_momentum(0.9F);
  solver.set_weight_decay(0.01F);
  return ArenaUpdate::make(solver, kParams, kLearned);
}

class ArenaUpdates : public testing::TestWithParam<const char*> {};

TEST_P(ArenaUpdates, HaveTheSameBitsHoweverTheArenaIsCut) {
  auto update = make(GetParam());
  ASSERT_TRUE(update.ok()) << update.status().message();
  ThreadPool one(1), two(2);
  Arenas whole = start();
  whole.update(*update, {0, kFloats}, one);
  EXPECT_NE(whole.weights, start().weights);
  for (const auto& cuts : std::vector<std::vector<int64_t>>{
           {0, 4096, kFloats}, {0, 8192, 12288, kFloats}, {0, 4096, 8192, 12288, 16384, kFloats}}) {
    Arenas cut = start();
    cut.update(*update, cuts, two);
    EXPECT_EQ(whole.weights, cut.weights) << cuts.size() - 1 << " slices";
    EXPECT_EQ(whole.first, cut.first);
    EXPECT_EQ(whole.second, cut.second);
  }
}

TEST_P(ArenaUpdates, LeaveFrozenParametersAndFoldStatistics) {
  auto update = make(GetParam());
  ASSERT_TRUE(update.ok());
  ThreadPool pool(1);
  Arenas arenas = start();
  const Arenas before = start();
  arenas.update(*update, {0, kFloats}, pool);
  for (size_t i = 14096; i < 14112; ++i) EXPECT_EQ(arenas.weights[i], before.weights[i]);
  for (size_t i = 16384; i < 16392; ++i) {
    EXPECT_FLOAT_EQ(arenas.weights[i], 0.25F * before.weights[i] + before.gradient[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, ArenaUpdates, testing::Values("SGD", "Adam", "AdamW", "LAMB"));

TEST(ArenaUpdate, TrustIsTheRatioOfTheNormsOfWholeParameters) {
  auto update = make("LAMB");
  ASSERT_TRUE(update.ok());
  // Pieces: one of the first parameter; three of the second, which crosses two borders.
  const std::vector<SquareNorms> pieces = {{9, 4}, {1, 1}, {2, 2}, {1, 1}};
  EXPECT_EQ(update->trust_ratios(pieces), (Floats{1.5F, 1, 1, 1}));
  EXPECT_EQ(update->trust_ratios(std::vector<SquareNorms>{{0, 4}, {8, 1}, {0, 0}, {0, 1}}),
            (Floats{1, 2, 1, 1}));
}

}  // namespace
}  // namespace cafetiere
