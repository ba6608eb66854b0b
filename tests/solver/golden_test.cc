// SPDX-License-Identifier: Apache-2.0
// Eight steps of each solver against the reference's figures, initial weights included.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "core/graph/filler.h"
#include "core/model/prototxt.h"
#include "core/solver/lr_policy.h"
#include "core/solver/update_rule.h"
#include "tests/support/npz.h"

namespace cafetiere {
namespace {

constexpr int kRows = 6, kInputs = 4, kOutputs = 3;
using Floats = std::vector<float>;

/// The net of the figures: y = x w' + b under a Euclidean loss.
struct Linear {
  Floats w, b, w_gradient, b_gradient;

  void backward(const Floats& x, const Floats& t) {
    w_gradient.assign(w.size(), 0);
    b_gradient.assign(b.size(), 0);
    for (size_t n = 0; n < kRows; ++n) {
      for (size_t o = 0; o < kOutputs; ++o) {
        float y = b[o];
        for (size_t i = 0; i < kInputs; ++i) y += x[n * kInputs + i] * w[o * kInputs + i];
        const float d = (y - t[n * kOutputs + o]) / kRows;
        b_gradient[o] += d;
        for (size_t i = 0; i < kInputs; ++i) w_gradient[o * kInputs + i] += d * x[n * kInputs + i];
      }
    }
  }
};

void expect_near(const Floats& actual, const Floats& expected, const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (size_t i = 0; i < actual.size(); ++i) {
    EXPECT_NEAR(actual[i], expected[i], 1e-5 * std::max(1.0F, std::fabs(expected[i])))
        << what << "[" << i << "]";
  }
}

class GoldenSolver : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenSolver, FollowsTheReference) {
  const std::string path = std::string(CFT_GOLDEN_DIR) + "/solvers/" + GetParam();
  if (!std::filesystem::exists(path + ".npz")) GTEST_SKIP() << "no golden figures here";
  auto figures = read_npz(path + ".npz");
  auto solver = read_solver(path + ".prototxt");
  ASSERT_TRUE(solver.ok()) << solver.status().message();
  const caffe::SolverParameter& param = solver->param;
  auto rule = make_update_rule(param);
  auto policy = LrPolicy::create(param);
  auto l1 = uses_l1(param);
  ASSERT_TRUE(rule.ok() && policy.ok() && l1.ok());

  Linear net{Floats(kOutputs * kInputs), Floats(kOutputs), {}, {}};
  Random random(static_cast<uint32_t>(param.random_seed()));
  random.gaussian(0, 1, net.w);
  random.gaussian(0, 1, net.b);
  EXPECT_EQ(net.w, figures["w0"].values) << "the random sequence differs from the reference";
  EXPECT_EQ(net.b, figures["b0"].values);

  std::array<Floats, 2> w_history{Floats(net.w.size()), Floats(net.w.size())};
  std::array<Floats, 2> b_history{Floats(net.b.size()), Floats(net.b.size())};
  int current_step = 0;
  for (int iter = 0; iter < 8; ++iter) {
    net.backward(figures["X"].values, figures["T"].values);
    const float rate = policy->rate(iter, &current_step);
    const float decay = param.weight_decay();
    (*rule)->apply(
        {net.w, net.w_gradient, {w_history[0], w_history[1]}, rate, decay, *l1, 1, iter});
    (*rule)->apply({net.b,
                    net.b_gradient,
                    {b_history[0], b_history[1]},
                    rate * 2,
                    decay * 0.5F,
                    *l1,
                    1,
                    iter});
    const std::string step = std::to_string(iter + 1);
    expect_near(net.w, figures["w" + step].values, "w" + step);
    expect_near(net.b, figures["b" + step].values, "b" + step);
  }
}

INSTANTIATE_TEST_SUITE_P(Solvers, GoldenSolver,
                         ::testing::Values("sgd", "sgd_l1", "nesterov", "adagrad", "rmsprop",
                                           "adam"));

}  // namespace
}  // namespace cafetiere
