// SPDX-License-Identifier: Apache-2.0
// The modes of working together: the same bits on any number of ranks where a mode promises them, and
// what one mode becomes when its settings make it another.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/model/weights.h"
#include "core/sync/auto_mode.h"
#include "tests/support/temp_dir.h"
#include "tests/train/jobs.h"

namespace cafetiere {
namespace {

constexpr int kPixels = 144;

std::string solver(const std::string& rule, const std::string& sync, int max_iter = 30) {
  return rule + R"( lr_policy: "inv" gamma: 0.0001 power: 0.75 display: 1 random_seed: 7
    max_iter: )" +
         std::to_string(max_iter) + " sync { " + sync + " check_interval: 5 }";
}

const char* const kSgd = "base_lr: 0.01 momentum: 0.9 weight_decay: 0.0005";
const char* const kPlainSgd = "base_lr: 0.01";

Job job(const std::string& solver, int ranks, int shards = 4) {
  return {.net = kMixedNet,
          .pixels = kPixels,
          .ranks = ranks,
          .max_iter = 30,
          .solver = solver,
          .shards = shards};
}

std::vector<float> weights(const Outcome& outcome) {
  std::vector<float> all;
  const auto net = parse_weights(std::as_bytes(std::span(outcome.model)));
  EXPECT_TRUE(net.ok());
  for (const auto& layer : net->layer()) {
    for (const auto& blob : layer.blobs()) {
      all.insert(all.end(), blob.data().begin(), blob.data().end());
    }
  }
  return all;
}

/// The largest difference, beside the largest weight.
double distance(const Outcome& a, const Outcome& b) {
  const std::vector<float> x = weights(a), y = weights(b);
  EXPECT_EQ(x.size(), y.size());
  double most = 0, scale = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::abs(double(x[i]) - double(y[i])));
    scale = std::max(scale, std::abs(double(x[i])));
  }
  return most / scale;
}

struct Mode {
  const char* name;
  std::string solver;
};

class Modes : public testing::TestWithParam<Mode> {};

TEST_P(Modes, HaveTheSameBitsOnAnyNumberOfRanks) {
  const Outcome one = train(job(GetParam().solver, 1));
  ASSERT_FALSE(one.losses.empty());
  EXPECT_LT(one.losses.back(), one.losses.front());
  for (int ranks = 2; ranks <= 4; ++ranks) {
    Job other = job(GetParam().solver, ranks);
    other.threads = ranks == 3 ? 2 : 1;
    other.tcp = ranks == 2;
    expect_same(one, train(other), std::to_string(ranks) + " ranks");
  }
}

TEST_P(Modes, GoOnFromTheEndOfARoundOnAnotherNumberOfRanks) {
  const Outcome whole = train(job(GetParam().solver, 2));
  Job begin = job(GetParam().solver, 2);
  begin.max_iter = 15;
  const Outcome half = train(begin);
  Job end = job(GetParam().solver, 3);
  end.from = &half;
  const Outcome rest = train(end);
  EXPECT_TRUE(whole.model == rest.model) << "weights differ";
  EXPECT_TRUE(whole.state == rest.state) << "history differs";
}

INSTANTIATE_TEST_SUITE_P(
    All, Modes,
    testing::Values(
        Mode{"AverageKept", solver(kSgd, "mode: 'average' period: 5")},
        Mode{"AverageKeptClipped",
             solver("clip_gradients: 1 iter_size: 2 base_lr: 0.01 momentum: 0.9",
                    "mode: 'average' period: 5")},
        Mode{"AverageAveraged", solver("type: 'Adam' momentum: 0.9 base_lr: 0.001",
                                       "mode: 'average' period: 5 history: 'averaged'")},
        Mode{"AverageReset", solver(kSgd, "mode: 'average' period: 5 history: 'reset'")},
        Mode{"AverageResetAdam", solver("type: 'Adam' momentum: 0.9 base_lr: 0.001",
                                        "mode: 'average' period: 5 history: 'reset'")},
        Mode{"Nesterov",
             solver("type: 'Nesterov' base_lr: 0.01 momentum: 0.9", "mode: 'average' period: 5")},
        Mode{"AdaGrad", solver("type: 'AdaGrad' base_lr: 0.01", "mode: 'average' period: 5")},
        Mode{"RMSProp",
             solver("type: 'RMSProp' base_lr: 0.001 rms_decay: 0.95", "mode: 'average' period: 5")},
        Mode{"AdaDelta", solver("type: 'AdaDelta' base_lr: 1 momentum: 0.95 delta: 1e-6",
                                "mode: 'average' period: 5")},
        Mode{"DiLoCo", solver("type: 'AdamW' momentum: 0.9 weight_decay: 0.01 base_lr: 0.001",
                              "mode: 'diloco' period: 5")}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Average, OfOneShardIsTheSolverAlone) {
  const Outcome alone = train(job(solver(kSgd, "mode: 'allreduce'"), 1, 1));
  const Outcome average = train(job(solver(kSgd, "mode: 'average' period: 10"), 1, 1));
  EXPECT_TRUE(alone.model == average.model) << "weights differ";
}

// Without momentum the mean of weights after one step is the step with the mean of the gradients, as
// long as the shards have as many rows each.
TEST(Average, EveryStepOfPlainSgdIsAllReduce) {
  const Outcome together = train(job(solver(kPlainSgd, "mode: 'allreduce'"), 2));
  const Outcome apart = train(job(solver(kPlainSgd, "mode: 'average' period: 1"), 2));
  EXPECT_LT(distance(together, apart), 1e-4);
}

TEST(DiLoCo, WithAWholeOuterStepIsAverage) {
  const std::string plain = "mode: 'diloco' period: 5 outer_rate: 1 outer_momentum: 0";
  const Outcome average = train(job(solver(kSgd, "mode: 'average' period: 5"), 2));
  EXPECT_LT(distance(average, train(job(solver(kSgd, plain), 2))), 1e-4);
}

TEST(Hierarchical, OfOneTeamIsAllReduce) {
  const Outcome together = train(job(solver(kSgd, "mode: 'allreduce'"), 4));
  expect_same(together, train(job(solver(kSgd, "mode: 'hierarchical' period: 5"), 4)), "one host");
}

TEST(Hierarchical, OfTeamsOfOneIsAverage) {
  const Outcome average = train(job(solver(kSgd, "mode: 'average' period: 5"), 4));
  const Outcome teams = train(job(solver(kSgd, "mode: 'hierarchical' period: 5 group_size: 1"), 4));
  EXPECT_LT(distance(average, teams), 1e-4);
}

TEST(Hierarchical, TwoTeamsOfTwoLearn) {
  const std::string text = solver(kSgd, "mode: 'hierarchical' period: 5 group_size: 2");
  const Outcome once = train(job(text, 4));
  EXPECT_LT(once.losses.back(), once.losses.front());
  expect_same(once, train(job(text, 4)), "the same teams again");
}

// Amid a period the teams have weights of their own.
TEST(Hierarchical, SnapshotsDoNotShowInTheWeights) {
  const std::string text = solver(kSgd, "mode: 'hierarchical' period: 5 group_size: 1");
  const Outcome none = train(job(text, 2));
  const TempDir folder;
  Job often = job(text + " snapshot: 7", 2);
  often.snapshots = folder.path("s");
  expect_same(none, train(often), "snapshots");
  for (const int step : {10, 15, 25}) {  // those of 7, 14 and 21, at the ends of their periods
    const std::string file = "s_iter_" + std::to_string(step) + ".solverstate";
    EXPECT_TRUE(std::filesystem::exists(folder.path(file))) << file;
  }
}

// Each team has a momentum of its own.
TEST(Hierarchical, GoesOnFromACheckpointOfTwoTeams) {
  const std::string text = solver(kSgd, "mode: 'hierarchical' period: 5 group_size: 2");
  const Outcome whole = train(job(text, 4));
  Job begin = job(text, 4);
  begin.max_iter = 15;
  const Outcome half = train(begin);
  Job end = job(text, 4);
  end.from = &half;
  const Outcome rest = train(end);
  EXPECT_TRUE(whole.model == rest.model) << "weights differ";
  EXPECT_TRUE(whole.state == rest.state) << "history differs";
}

// Half the bytes, nearly the same weights, and the same bits on all ranks (check_interval).
TEST(Wire, OfSixteenBitsStaysNear) {
  for (const std::string mode : {"allreduce", "average", "diloco"}) {
    const std::string sync = "mode: '" + mode + "' period: 5 ";
    const Outcome whole = train(job(solver(kSgd, sync), 2));
    for (const std::string wire : {"bfloat16", "float16"}) {
      const Outcome half = train(job(solver(kSgd, sync + "wire: '" + wire + "' "), 2));
      const double off = distance(whole, half);
      EXPECT_GT(off, 0) << mode << " " << wire;
      EXPECT_LT(off, 0.02) << mode << " " << wire;
    }
  }
}

// Adam's second moments are too small for 16 bits, and AdaGrad's sums may be too large.
TEST(Wire, OfSixteenBitsDoesNotCarryHistory) {
  const std::string sync = "mode: 'average' period: 5 history: 'averaged' wire: 'float16'";
  const Outcome outcome = train(job(solver("type: 'Adam' momentum: 0.9 base_lr: 0.001", sync), 2));
  caffe::SolverState state;
  ASSERT_TRUE(state.ParseFromString(outcome.state));
  constexpr float kLeastOfFloat16 = 5.9e-8F;
  int less = 0;
  for (int i = state.history_size() / 2; i < state.history_size(); ++i) {
    for (const float moment : state.history(i).data())
      less += moment > 0 && moment < kLeastOfFloat16;
  }
  EXPECT_GT(less, 0);
}

TEST(Wire, IsRefusedWhereItWouldHaveNoEffect) {
  for (const char* text : {"mode: 'hierarchical' wire: 'float16'", "mode: 'easgd' exchange: 'ring'",
                           "compression: 'topk' wire: 'bfloat16'"}) {
    caffe::SyncParameter sync;
    EXPECT_THAT(merge_sync(text, "sync", &sync).message(), testing::HasSubstr("of its own"))
        << text;
  }
}

TEST(Ring, IsTheTreeToRounding) {
  const Outcome tree = train(job(solver(kSgd, "mode: 'allreduce'"), 3));
  const Outcome ring = train(job(solver(kSgd, "mode: 'allreduce' exchange: 'ring'"), 3));
  EXPECT_LT(distance(tree, ring), 1e-4);
  expect_same(ring, train(job(solver(kSgd, "mode: 'allreduce' exchange: 'ring'"), 3)), "again");
}

const std::string kLossy[] = {"compression: 'topk' compression_density: 0.1",
                              "compression: 'powersgd' compression_rank: 2"};

TEST(Compression, LearnsAndIsWholeWithoutLoss) {
  const Outcome whole = train(job(solver(kSgd, "mode: 'allreduce'"), 2));
  const std::string all = "compression: 'topk' compression_density: 1";
  EXPECT_LT(distance(whole, train(job(solver(kSgd, all), 2))), 1e-4);
  for (const std::string& lossy : kLossy) {
    const Outcome outcome = train(job(solver(kSgd, lossy), 2));
    EXPECT_LT(outcome.losses.back(), outcome.losses.front()) << lossy;
    EXPECT_GT(distance(whole, outcome), 0) << lossy;
    expect_same(outcome, train(job(solver(kSgd, lossy), 2)), lossy + " again");
  }
}

Outcome half_of(const std::string& sync, int ranks) {
  Job begin = job(solver(kSgd, sync), ranks);
  begin.max_iter = 15;
  return train(begin);
}

TEST(Compression, GoesOnWithWhatEachRankHasLeftOut) {
  for (const std::string& lossy : kLossy) {
    for (int ranks : {1, 2, 3}) {
      const Outcome whole = train(job(solver(kSgd, lossy), ranks));
      const Outcome half = half_of(lossy, ranks);
      Job end = job(solver(kSgd, lossy), ranks);
      end.from = &half;
      const Outcome rest = train(end);
      EXPECT_TRUE(whole.model == rest.model) << lossy << ", ranks " << ranks;
      EXPECT_TRUE(whole.state == rest.state) << lossy << ", ranks " << ranks;
    }
  }
}

TEST(Compression, BeginsAtNothingWithAnotherNumberOfRanksOrMode) {
  for (const std::string& lossy : kLossy) {
    const Outcome half = half_of(lossy, 2);
    for (const std::string& other :
         {lossy, std::string("mode: 'allreduce'"), std::string("mode: 'diloco' period: 5")}) {
      Job end = job(solver(kSgd, other), 3);
      end.from = &half;
      const Outcome rest = train(end);
      ASSERT_FALSE(rest.losses.empty()) << lossy << " then " << other;
      EXPECT_LT(rest.losses.back(), half.losses.front()) << lossy << " then " << other;
    }
  }
}

TEST(Easgd, LearnsAndMeetsAtTheEnd) {
  const std::string text = solver(kSgd, "mode: 'easgd' period: 3 moving_rate: 0.3", 60);
  Job four = job(text, 4);
  four.tcp = true;
  four.max_iter = 60;
  four.rows = 503;
  const Outcome outcome = train(four);
  EXPECT_LT(outcome.losses.back(), outcome.losses.front());
  EXPECT_THAT(outcome.state, testing::HasSubstr("easgd"));
  ASSERT_GE(outcome.rows_per_epoch.size(), 2u);
  EXPECT_EQ(outcome.rows_per_epoch[0], four.rows);
}

TEST(Auto, ChoosesByTheShareOfTheExchange) {
  EXPECT_EQ(AutoMode::period_for(1, 0.01), 1);
  EXPECT_EQ(AutoMode::period_for(1, 0.11), 1);
  EXPECT_EQ(AutoMode::period_for(1, 0.2), AutoMode::kShortestPeriod);
  EXPECT_EQ(AutoMode::period_for(1, 5), 20);
  EXPECT_EQ(AutoMode::period_for(1, 1e6), AutoMode::kLongestPeriod);
}

TEST(Auto, TrainsAndKeepsItsChoice) {
  const Outcome outcome = train(job(solver(kSgd, "mode: 'auto'"), 2));
  EXPECT_LT(outcome.losses.back(), outcome.losses.front());
  EXPECT_THAT(outcome.state, testing::HasSubstr("auto, period "));
}

// The solver's update, which takes most of such a step, is no exchange.
TEST(Auto, AloneKeepsAllReduce) {
  Job wide = job(solver("type: 'Adam' momentum: 0.9 base_lr: 0.001", "mode: 'auto'"), 1, 1);
  wide.net = R"(name: "wide"
    layer { name: "rows" type: "MemoryData" top: "data" top: "label"
      memory_data_param { batch_size: 1 channels: 1 height: 12 width: 12 } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
      inner_product_param { num_output: 4000 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";
  EXPECT_THAT(train(wide).state, testing::HasSubstr("auto, period 1"));
}

TEST(Auto, GoesOnAsTheModeThatItChose) {
  const std::string chosen = solver(kSgd, "mode: 'diloco' period: 5 outer_momentum: 0.5");
  const Outcome whole = train(job(chosen, 2));
  Job first = job(chosen, 2);
  first.max_iter = 15;
  Outcome half = train(first);
  caffe::SolverState state;
  ASSERT_TRUE(state.ParseFromString(half.state));
  state.mutable_sync()->set_mode("auto, period 5");
  half.state = state.SerializeAsString();
  Job second = job(solver(kSgd, "mode: 'auto'"), 2);
  second.from = &half;
  EXPECT_EQ(train(second).model, whole.model);
}

}  // namespace
}  // namespace cafetiere
