// SPDX-License-Identifier: Apache-2.0
#include "core/solver/lr_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/model/prototxt.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

Result<LrPolicy> make_policy(const std::string& text) {
  auto solver = parse_solver("base_lr: 0.01 " + text, "solver.prototxt");
  EXPECT_TRUE(solver.ok()) << solver.status().message();
  return LrPolicy::create(solver->param);
}

float rate_at(const std::string& text, int iter) {
  auto policy = make_policy(text);
  EXPECT_TRUE(policy.ok()) << policy.status().message();
  int current_step = 0;
  return policy->rate(iter, &current_step);
}

TEST(LrPolicy, FollowsEachFormula) {
  EXPECT_FLOAT_EQ(rate_at("lr_policy: 'fixed'", 500), 0.01F);
  EXPECT_FLOAT_EQ(rate_at("lr_policy: 'step' gamma: 0.1 stepsize: 100", 99), 0.01F);
  EXPECT_FLOAT_EQ(rate_at("lr_policy: 'step' gamma: 0.1 stepsize: 100", 200), 0.0001F);
  EXPECT_FLOAT_EQ(rate_at("lr_policy: 'exp' gamma: 0.99", 10), 0.01F * std::pow(0.99F, 10.0F));
  EXPECT_FLOAT_EQ(rate_at("lr_policy: 'inv' gamma: 0.0001 power: 0.75", 100),
                  0.01F * std::pow(1.01F, -0.75F));
  EXPECT_FLOAT_EQ(rate_at("lr_policy: 'poly' power: 2 max_iter: 10", 5), 0.0025F);
  EXPECT_FLOAT_EQ(rate_at("lr_policy: 'poly' power: 0.5 max_iter: 10", 11), 0.0F);
  EXPECT_FLOAT_EQ(rate_at("lr_policy: 'sigmoid' gamma: 0.5 stepsize: 10", 10), 0.005F);
  EXPECT_FLOAT_EQ(rate_at("lr_policy: 'sigmoid' gamma: -0.5 stepsize: 10", 14),
                  0.01F / (1 + std::exp(2.F)));
}

TEST(LrPolicy, CosineFallsToItsLeastRateAndStaysThere) {
  const std::string text = "lr_policy: 'cosine' max_iter: 100 min_lr: 0.002";
  EXPECT_FLOAT_EQ(rate_at(text, 0), 0.01F);
  EXPECT_FLOAT_EQ(rate_at(text, 50), 0.006F);
  EXPECT_FLOAT_EQ(rate_at(text, 25), 0.006F + 0.004F * std::sqrt(0.5F));
  EXPECT_FLOAT_EQ(rate_at(text, 100), 0.002F);
  EXPECT_FLOAT_EQ(rate_at(text, 150), 0.002F);
}

TEST(LrPolicy, EveryPolicyWarmsUp) {
  for (const std::string policy :
       {"lr_policy: 'fixed'", "lr_policy: 'step' gamma: 0.1 stepsize: 3",
        "lr_policy: 'exp' gamma: 0.9", "lr_policy: 'inv' gamma: 0.1 power: 1",
        "lr_policy: 'multistep' gamma: 0.5 stepvalue: 2", "lr_policy: 'poly' power: 1 max_iter: 20",
        "lr_policy: 'sigmoid' gamma: 0.5 stepsize: 10", "lr_policy: 'cosine' max_iter: 20"}) {
    const std::string warm = policy + " warmup_iter: 4 warmup_start: 0.2";
    EXPECT_FLOAT_EQ(rate_at(warm, 0), 0.2F * rate_at(policy, 0)) << policy;
    EXPECT_FLOAT_EQ(rate_at(warm, 1), 0.4F * rate_at(policy, 1)) << policy;
    EXPECT_EQ(rate_at(warm, 4), rate_at(policy, 4)) << policy;
  }
  EXPECT_THAT(make_policy("lr_policy: 'fixed' warmup_start: 2").status().message(),
              HasSubstr("warmup_start in [0, 1]"));
}

TEST(LrPolicy, MultistepTakesOneStepACallAndKeepsItsCount) {
  auto policy =
      make_policy("lr_policy: 'multistep' gamma: 0.5 stepvalue: 2 stepvalue: 2 stepvalue: 5");
  ASSERT_TRUE(policy.ok());
  int step = 0;
  std::vector<int> steps;
  for (int iter = 0; iter < 7; ++iter) {
    const float rate = policy->rate(iter, &step);
    EXPECT_FLOAT_EQ(rate, 0.01F * std::pow(0.5F, static_cast<float>(step)));
    steps.push_back(step);
  }
  EXPECT_EQ(steps, (std::vector<int>{0, 0, 1, 2, 2, 3, 3}));
}

TEST(LrPolicy, RefusesWhatCannotWork) {
  EXPECT_THAT(make_policy("lr_policy: 'stp'").status().message(),
              HasSubstr("Unknown learning rate policy: stp"));
  EXPECT_THAT(make_policy("lr_policy: 'stp'").status().message(),
              HasSubstr("did you mean \"step\"?"));
  EXPECT_THAT(make_policy("").status().message(),
              HasSubstr("Unknown learning rate policy: none is given"));
  EXPECT_THAT(make_policy("lr_policy: 'step' gamma: 0.1").status().message(),
              HasSubstr("stepsize > 0"));
  EXPECT_THAT(make_policy("lr_policy: 'sigmoid' gamma: 1").status().message(),
              HasSubstr("stepsize > 0"));
  EXPECT_THAT(make_policy("lr_policy: 'inv' gamma: -1").status().message(),
              HasSubstr("gamma >= 0"));
  EXPECT_THAT(make_policy("lr_policy: 'poly' power: 1").status().message(),
              HasSubstr("max_iter > 0"));
}

}  // namespace
}  // namespace cafetiere
