#include "core/solver/lr_policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/model/prototxt.h"

namespace cafetiere {
namespace {

using ::testing::HasSubstr;

Result<LrPolicy> make(const std::string& text) {
  auto solver = parse_solver("base_lr: 0.01 " + text, "solver.prototxt");
  EXPECT_TRUE(solver.ok()) << solver.status().message();
  return LrPolicy::create(solver->param);
}

float rate_at(const std::string& text, int iter) {
  auto policy = make(text);
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
}

TEST(LrPolicy, MultistepTakesOneStepACallAndKeepsItsCount) {
  auto policy = make("lr_policy: 'multistep' gamma: 0.5 stepvalue: 2 stepvalue: 2 stepvalue: 5");
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
  EXPECT_THAT(make("lr_policy: 'stp'").status().message(),
              HasSubstr("Unknown learning rate policy: stp"));
  EXPECT_THAT(make("lr_policy: 'stp'").status().message(), HasSubstr("did you mean \"step\"?"));
  EXPECT_THAT(make("").status().message(),
              HasSubstr("Unknown learning rate policy: none is given"));
  EXPECT_THAT(make("lr_policy: 'step' gamma: 0.1").status().message(), HasSubstr("stepsize > 0"));
  EXPECT_THAT(make("lr_policy: 'sigmoid' gamma: 1").status().message(), HasSubstr("stepsize > 0"));
  EXPECT_THAT(make("lr_policy: 'inv' gamma: -1").status().message(), HasSubstr("gamma >= 0"));
  EXPECT_THAT(make("lr_policy: 'poly' power: 1").status().message(), HasSubstr("max_iter > 0"));
}

}  // namespace
}  // namespace cafetiere
