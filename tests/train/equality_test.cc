// SPDX-License-Identifier: Apache-2.0
// The same bits on any number of ranks: weights, history and logged losses of a training with four
// virtual shards, whoever holds which shard, over any transport, with any number of threads.
#include <gtest/gtest.h>

#include "tests/train/jobs.h"

namespace cafetiere {
namespace {

class Equality : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(Equality, AnyRanksThreadsAndTransport) {
  const auto [net, pixels] = GetParam();
  const Outcome one = train({.net = net, .pixels = pixels});
  ASSERT_EQ(one.losses.size(), 50u);
  ASSERT_FALSE(one.model.empty());
  for (const Job& s :
       {Job{net, pixels, 1, 2, false}, Job{net, pixels, 2, 1, false}, Job{net, pixels, 2, 2, true},
        Job{net, pixels, 3, 1, true}, Job{net, pixels, 3, 2, false}, Job{net, pixels, 4, 1, true},
        Job{net, pixels, 4, 1, false}}) {
    expect_same(one, train(s),
                std::to_string(s.ranks) + " ranks, " + std::to_string(s.threads) + " threads, " +
                    (s.tcp ? "TCP" : "in process"));
  }
}

TEST_P(Equality, EncryptedConnections) {
  const auto [net, pixels] = GetParam();
  const Outcome one = train({.net = net, .pixels = pixels});
  const Job encrypted{.net = net, .pixels = pixels, .ranks = 2, .tcp = true, .encrypt = true};
  expect_same(one, train(encrypted), "2 ranks by TLS");
}

TEST_P(Equality, StoppedAndResumedOnAnotherNumberOfRanks) {
  const auto [net, pixels] = GetParam();
  const Outcome whole = train({.net = net, .pixels = pixels, .ranks = 2});
  const Outcome half = train({.net = net, .pixels = pixels, .ranks = 2, .max_iter = 23});
  const Outcome rest = train({.net = net, .pixels = pixels, .ranks = 3, .from = &half});
  EXPECT_EQ(whole.model == rest.model, true) << "weights differ";
  EXPECT_EQ(whole.state == rest.state, true) << "history differs";
  std::vector<double> losses = half.losses;
  losses.insert(losses.end(), rest.losses.begin(), rest.losses.end());
  EXPECT_EQ(whole.losses, losses);
}

TEST_P(Equality, EveryRowOnceAnEpoch) {
  const auto [net, pixels] = GetParam();
  const Outcome o = train({.net = net, .pixels = pixels, .ranks = 3});
  ASSERT_GE(o.rows_per_epoch.size(), 2u);
  EXPECT_EQ(o.rows_per_epoch[0], kRows);
}

/// Products and activations in bfloat16: the promise is the same, the numbers are not.
TEST_P(Equality, Bfloat16OnAnyNumberOfRanks) {
  const auto [net, pixels] = GetParam();
  const auto job = [&](const std::string& precision, int ranks, int threads) {
    return Job{.net = net,
               .pixels = pixels,
               .ranks = ranks,
               .threads = threads,
               .max_iter = 12,
               .solver = kSolver + (" precision: '" + precision + "'")};
  };
  const Outcome one = train(job("bf16", 1, 1));
  ASSERT_EQ(one.losses.size(), 12U);
  for (int ranks = 1; ranks <= 4; ++ranks) {
    expect_same(one, train(job("bf16", ranks, 2)), std::to_string(ranks) + " ranks");
  }
  const Outcome exact = train(job("float32", 1, 1));
  EXPECT_FALSE(exact.model == one.model);
  EXPECT_NEAR(exact.losses.back(), one.losses.back(), 0.02 * exact.losses.back());
}

/// Rules of their own kind: decay beside the step, and norms of whole blobs that slices cut.
TEST(Rules, HaveTheSameBitsOnAnyNumberOfRanks) {
  for (const std::string type : {"AdamW", "LAMB"}) {
    const std::string solver = "type: '" + type + R"(' momentum: 0.9 weight_decay: 0.01
      base_lr: 0.002 lr_policy: "cosine" min_lr: 0.0001 warmup_iter: 4 warmup_start: 0.1
      max_iter: 12 display: 1 random_seed: 7 clip_gradients: 1.5)";
    const auto job = [&](int ranks, int threads) {
      return Job{.net = kLeNet,
                 .pixels = 28 * 28,
                 .ranks = ranks,
                 .threads = threads,
                 .max_iter = 12,
                 .solver = solver};
    };
    const Outcome one = train(job(1, 1));
    ASSERT_EQ(one.losses.size(), 12U);
    EXPECT_LT(one.losses.back(), one.losses.front()) << type;
    for (int ranks = 2; ranks <= 4; ++ranks) {
      expect_same(one, train(job(ranks, 2)), type + " on " + std::to_string(ranks) + " ranks");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Nets, Equality,
                         testing::Values(std::pair(kLeNet, 28 * 28), std::pair(kMixedNet, 144)),
                         [](const auto& info) { return info.index == 0 ? "LeNet" : "Mixed"; });

}  // namespace
}  // namespace cafetiere
