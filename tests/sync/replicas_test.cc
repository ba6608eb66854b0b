// SPDX-License-Identifier: Apache-2.0
#include "core/sync/replicas.h"

#include <gtest/gtest.h>

namespace cafetiere {
namespace {

constexpr int64_t kFew = 3;
constexpr float kStepRate = 0.5F;

ArenaUpdate adam_rule() {
  caffe::SolverParameter solver;
  solver.set_type("Adam");
  solver.set_momentum(0.9F);
  Result<ArenaUpdate> update = ArenaUpdate::make(solver, {{0, kFew}}, kFew);
  return std::move(*update);
}

/// Under a gradient that stays the same, each of Adam's steps is the rate, whenever its moments
/// began with zeros.
void expect_whole_steps(Replicas& replicas, int iter) {
  std::vector<float> weights(kFew), gradient(kFew, 0.25F);
  for (int step = 0; step < 4; ++step) {
    replicas.step({.iter = iter + step, .rate = kStepRate}, gradient, weights);
    EXPECT_NEAR(weights[0], -kStepRate * float(step + 1), 1e-4F) << "iteration " << iter + step;
  }
}

TEST(Replicas, BiasIsThatOfAHistoryThatBeganLate) {
  ThreadPool pool(1);
  const SyncContext context{.floats = kFew, .pool = &pool};
  Replicas replicas(context, adam_rule());
  expect_whole_steps(replicas, 0);

  Replicas joined(context, adam_rule());
  NoHistory none(2, 1000);
  ASSERT_TRUE(joined.restore(none).ok());
  expect_whole_steps(joined, 1000);

  Replicas survivor(context, adam_rule());
  const std::unique_ptr<ModeState> held = joined.take_history();
  ASSERT_TRUE(survivor.restore(*held).ok());
  expect_whole_steps(survivor, 1004);

  Replicas afresh(context, adam_rule());
  afresh.reset_every(4);
  expect_whole_steps(afresh, 0);
  afresh.reset_history();
  expect_whole_steps(afresh, 4000);
}

}  // namespace
}  // namespace cafetiere
