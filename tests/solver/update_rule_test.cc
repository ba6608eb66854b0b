// SPDX-License-Identifier: Apache-2.0
#include "core/solver/update_rule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace cafetiere {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;

caffe::SolverParameter solver_of(const std::string& type) {
  caffe::SolverParameter solver;
  solver.set_type(type);
  if (type != "AdaGrad" && type != "RMSProp") solver.set_momentum(0.9F);
  if (type == "AdaDelta") solver.set_delta(1e-6F);
  return solver;
}

Floats noise(size_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::normal_distribution<float> normal;
  Floats values(n);
  for (float& x : values) x = normal(engine);
  return values;
}

struct State {
  Floats weights, gradient;
  std::array<Floats, kMaxHistory> history;

  UpdateArgs args(size_t begin, size_t count, bool l1) {
    UpdateArgs args;
    args.weights = std::span(weights).subspan(begin, count);
    args.gradient = std::span<const float>(gradient).subspan(begin, count);
    for (size_t h = 0; h < history.size(); ++h) {
      args.history[h] = std::span(history[h]).subspan(begin, count);
    }
    args.rate = 0.01F;
    args.decay = 0.0005F;
    args.l1 = l1;
    args.gradient_scale = 0.5F;
    args.iter = 3;
    return args;
  }
};

State start_state() {
  const size_t n = 1003;
  State state{noise(n, 1), noise(n, 2), {noise(n, 3), noise(n, 4)}};
  for (Floats& history : state.history) {
    for (float& h : history) h = std::fabs(h);  // running squares are never negative
  }
  return state;
}

class UpdateRules : public ::testing::TestWithParam<std::string> {};

TEST_P(UpdateRules, GiveTheSameBitsHoweverTheSpansAreCut) {
  auto rule = make_update_rule(solver_of(GetParam()));
  ASSERT_TRUE(rule.ok()) << rule.status().message();
  for (bool l1 : {false, true}) {
    State whole = start_state();
    State pieces = start_state();
    const size_t n = whole.weights.size();
    (*rule)->prepare(whole.args(0, n, l1));
    (*rule)->apply(whole.args(0, n, l1));
    for (size_t begin = 0, size = 1; begin < n; begin += size, size = size % 13 + 1) {
      size = std::min(size, n - begin);
      (*rule)->prepare(pieces.args(begin, size, l1));
      (*rule)->apply(pieces.args(begin, size, l1));
    }
    EXPECT_NE(whole.weights, start_state().weights);
    EXPECT_EQ(whole.weights, pieces.weights);
    EXPECT_EQ(whole.history, pieces.history);
  }
}

INSTANTIATE_TEST_SUITE_P(All, UpdateRules, ::testing::ValuesIn(update_rule_names()));

TEST(UpdateRule, SgdFollowsItsFormulaInFloats) {
  auto rule = make_update_rule(solver_of("SGD"));
  ASSERT_TRUE(rule.ok());
  EXPECT_EQ((*rule)->history_per_param(), 1);
  State state = start_state();
  const State before = start_state();
  (*rule)->apply(state.args(0, state.weights.size(), false));
  for (size_t i = 0; i < state.weights.size(); ++i) {
    const float g = 0.0005F * before.weights[i] + before.gradient[i] * 0.5F;
    const float v = 0.9F * before.history[0][i] + 0.01F * g;
    ASSERT_EQ(state.history[0][i], v);
    ASSERT_EQ(state.weights[i], before.weights[i] - v);
  }
  EXPECT_EQ(state.history[1], before.history[1]);
}

TEST(UpdateRule, AdaDeltaFollowsItsFormula) {
  auto rule = make_update_rule(solver_of("AdaDelta"));
  ASSERT_TRUE(rule.ok());
  EXPECT_EQ((*rule)->history_per_param(), 2);
  State state = start_state();
  const State before = start_state();
  (*rule)->apply(state.args(0, state.weights.size(), false));
  for (size_t i = 0; i < state.weights.size(); ++i) {
    const double g = 0.0005 * before.weights[i] + before.gradient[i] * 0.5;
    const double h = 0.9 * before.history[0][i] + 0.1 * g * g;
    const double u = g * std::sqrt((before.history[1][i] + 1e-6) / (h + 1e-6));
    const double s = 0.9 * before.history[1][i] + 0.1 * u * u;
    ASSERT_NEAR(state.history[0][i], h, 1e-5 * h + 1e-7);
    ASSERT_NEAR(state.history[1][i], s, 1e-5 * s + 1e-7);
    ASSERT_NEAR(state.weights[i], before.weights[i] - 0.01 * u, 1e-5);
  }
}

/// The direction that AdamW and LAMB go, in double precision, after the three updates of start_state().
double adam_direction(const State& before, size_t i) {
  const double g = before.gradient[i] * 0.5;
  const double m = 0.9 * before.history[0][i] + 0.1 * g;
  const double v = 0.999 * before.history[1][i] + 0.001 * g * g;
  return m / (1 - std::pow(0.9, 4)) / (std::sqrt(v / (1 - std::pow(0.999, 4))) + 1e-8);
}

TEST(UpdateRule, AdamWDecaysTheWeightsAlone) {
  auto rule = make_update_rule(solver_of("AdamW"));
  ASSERT_TRUE(rule.ok());
  State state = start_state();
  const State before = start_state();
  (*rule)->apply(state.args(0, state.weights.size(), false));
  for (size_t i = 0; i < state.weights.size(); ++i) {
    const double step = adam_direction(before, i) + 0.0005 * before.weights[i];
    ASSERT_NEAR(state.weights[i], before.weights[i] - 0.01 * step, 2e-6);
  }
}

TEST(UpdateRule, LambStepsAreAsLongAsTheWeightsTimesTheRate) {
  auto rule = make_update_rule(solver_of("LAMB"));
  ASSERT_TRUE(rule.ok());
  ASSERT_TRUE((*rule)->needs_norms());
  State state = start_state();
  const State before = start_state();
  UpdateArgs args = state.args(0, state.weights.size(), false);
  const SquareNorms norms = (*rule)->prepare(args);
  EXPECT_EQ(state.weights, before.weights);
  args.trust = static_cast<float>(std::sqrt(norms.weights / norms.step));
  (*rule)->apply(args);
  double weights = 0, moved = 0;
  for (size_t i = 0; i < state.weights.size(); ++i) {
    const double w = before.weights[i];
    const double step = args.trust * (adam_direction(before, i) + 0.0005 * w);
    ASSERT_NEAR(state.weights[i], w - 0.01 * step, 2e-6);
    weights += w * w;
    moved += (state.weights[i] - w) * (state.weights[i] - w);
  }
  EXPECT_NEAR(norms.weights, weights, 1e-9 * weights);
  EXPECT_NEAR(std::sqrt(moved), 0.01 * std::sqrt(weights), 1e-5);
}

TEST(UpdateRule, RefusesWhatCannotWork) {
  EXPECT_THAT(make_update_rule(solver_of("Adamm")).status().message(),
              HasSubstr("Unknown solver type: Adamm (known types: SGD, Nesterov"));
  for (const char* type : {"AdaGrad", "RMSProp"}) {
    caffe::SolverParameter solver = solver_of(type);
    solver.set_momentum(0.5F);
    EXPECT_THAT(make_update_rule(solver).status().message(),
                HasSubstr(std::string("Momentum cannot be used with ") + type));
  }
  caffe::SolverParameter solver = solver_of("RMSProp");
  solver.set_rms_decay(1);
  EXPECT_THAT(make_update_rule(solver).status().message(), HasSubstr("rms_decay"));

  for (const char* type : {"Adam", "AdamW", "LAMB"}) {
    solver = solver_of(type);
    solver.set_momentum2(1);
    EXPECT_THAT(make_update_rule(solver).status().message(), HasSubstr("momentum2 in [0, 1)"));
  }

  solver = solver_of("SGD");
  solver.set_regularization_type("L3");
  EXPECT_TRUE(make_update_rule(solver).ok()) << "without decay the type does not matter";
  solver.set_weight_decay(0.1F);
  EXPECT_THAT(make_update_rule(solver).status().message(), HasSubstr("L1 or L2"));
}

}  // namespace
}  // namespace cafetiere
