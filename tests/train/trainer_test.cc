// SPDX-License-Identifier: Apache-2.0
// A trainer that is broken off, tried again, or asked for what its net's outputs are.
#include "core/train/trainer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <thread>

#include "core/comm/collectives.h"
#include "core/train/plan_set.h"

namespace cafetiere {
namespace {

constexpr const char* kTinyNet = R"(
  layer { name: "rows" type: "Input" top: "data" top: "label"
    input_param { shape { dim: 4 dim: 6 } shape { dim: 4 } } }
  layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
    inner_product_param { num_output: 3 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";

/// Batches of four rows that depend on the sub-step; `before` is asked before each.
struct Numbers : Source {
  std::function<Status(int64_t)> before;
  int64_t filled = 0;
  std::vector<Shape> top_shapes() const override { return {{4, 6}, {4}}; }
  int64_t rows(int, int64_t) const override { return 4; }
  Status fill(int, int64_t sub_step, std::span<float* const> tops) override {
    if (before) CFT_TRY(before(sub_step));
    ++filled;
    for (int i = 0; i < 24; ++i) tops[0][i] = float((sub_step * 7 + i * 5) % 11) - 5;
    for (int i = 0; i < 4; ++i) tops[1][i] = float((sub_step + i) % 3);
    return {};
  }
};

TrainerOptions options_for(const std::string& solver, const std::string& net = kTinyNet) {
  TrainerOptions options;
  options.solver = *parse_solver("lr_policy: 'fixed' random_seed: 7 " + solver, "solver");
  options.net = *parse_net(net, "net");
  options.has_net = true;
  return options;
}

std::unique_ptr<Trainer> make_trainer(TrainerOptions options) {
  auto trainer = Trainer::create(std::move(options));
  EXPECT_TRUE(trainer.ok()) << trainer.status().message();
  return *std::move(trainer);
}

std::vector<float> weights_of(const Trainer& trainer) {
  return {trainer.weights().begin(), trainer.weights().end()};
}

TEST(Trainer, CancelDoesNotWaitForTheEndOfARound) {
  const auto trainer =
      make_trainer(options_for("base_lr: 0.01 max_iter: 500 sync { mode: 'average' period: 500 }"));
  Numbers rows;
  rows.before = [&](int64_t sub_step) {
    if (sub_step == 20) trainer->cancel();
    return Status();
  };
  EXPECT_EQ(trainer->run(nullptr, {{"rows", &rows}}, {}).code(), ErrorCode::kCancelled);
  EXPECT_LT(rows.filled, 150);  // those made ahead too
}

TEST(Trainer, CancelBreaksATestOff) {
  const auto trainer =
      make_trainer(options_for("base_lr: 0.01 max_iter: 5 test_interval: 5 "
                               "test_iter: 500 test_initialization: true"));
  Numbers rows, tested;
  tested.before = [&](int64_t batch) {
    if (batch == 20) trainer->cancel();
    return Status();
  };
  const std::vector<TestFeed> tests{{{{"rows", &tested}}, 500, true}};
  EXPECT_EQ(trainer->run(nullptr, {{"rows", &rows}}, tests).code(), ErrorCode::kCancelled);
  EXPECT_LT(tested.filled, 30);
}

// Without test_initialization the last test may be the first: of the first batches.
TEST(Trainer, TestsBeforeTheFirstIntervalBeginWithTheFirstBatch) {
  const auto trainer =
      make_trainer(options_for("base_lr: 0.01 max_iter: 5 test_interval: 10 test_iter: 2 "
                               "test_initialization: false early_stopping { patience: 3 }"));
  Numbers rows, tested;
  tested.before = [](int64_t batch) {
    EXPECT_GE(batch, 0);
    return Status();
  };
  const std::vector<TestFeed> tests{{{{"rows", &tested}}, 2, false}};
  const Status status = trainer->run(nullptr, {{"rows", &rows}}, tests);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(tested.filled, 2);
}

TEST(Trainer, ALabelBeyondTheClassesIsAnError) {
  const auto trainer = make_trainer(
      options_for("base_lr: 0.01 max_iter: 5",
                  std::string(kTinyNet).replace(std::string(kTinyNet).find("num_output: 3"), 13,
                                                "num_output: 2")));
  Numbers rows;  // with labels 0, 1 and 2
  const Status status = trainer->run(nullptr, {{"rows", &rows}}, {});
  EXPECT_EQ(status.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              ::testing::HasSubstr("layer 'loss': label 2 at position 2 of the batch is none of 2 "
                                   "classes, 0 to 1"));
}

// The step that multistep counts is that of the round which is trained again.
TEST(Trainer, ARoundThatIsTriedAgainHasTheSameRates) {
  const std::string solver =
      "base_lr: 0.1 lr_policy: 'multistep' gamma: 0.1 stepvalue: 6 max_iter: 12 "
      "sync { mode: 'average' period: 4 }";
  const auto train = [&](int64_t lost_at) {
    TrainerOptions options = options_for("");
    options.solver = *parse_solver(solver, "solver");
    options.survivors = true;
    const auto trainer = make_trainer(std::move(options));
    Numbers rows;
    rows.before = [&](int64_t sub_step) {
      if (sub_step != std::exchange(lost_at, sub_step == lost_at ? -1 : lost_at)) return Status();
      return Status(ErrorCode::kUnavailable, "a peer was lost");
    };
    Status status = trainer->run(nullptr, {{"rows", &rows}}, {});
    if (!status.ok()) status = trainer->run(nullptr, {{"rows", &rows}}, {});
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(trainer->summary().rows_per_epoch, std::vector<int64_t>{12 * 4});
    EXPECT_EQ(trainer->rows_used(), (RowCounts::ByEpoch{{0, 12 * 4}}));
    return weights_of(*trainer);
  };
  EXPECT_EQ(train(-1), train(7));
}

TEST(Trainer, AccountsForAllOfItsTime) {
  const auto before = TimeAccount::Clock::now();
  TrainerOptions options = options_for("");
  options.solver = *parse_solver("base_lr: 0.1 lr_policy: 'fixed' max_iter: 12", "solver");
  const auto trainer = make_trainer(std::move(options));
  Numbers rows;
  rows.before = [](int64_t) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // rows that come slowly
    return Status();
  };
  ASSERT_TRUE(trainer->run(nullptr, {{"rows", &rows}}, {}).ok());
  const TimeAccount::Seconds at_end = trainer->summary().rank_seconds.at(0);
  const TimeAccount::Seconds seconds = trainer->seconds();
  const double wall = std::chrono::duration<double>(TimeAccount::Clock::now() - before).count();
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.);
  EXPECT_LE(sum, wall);
  EXPECT_GE(sum, 0.9 * wall - 0.005);  // what lies before the options are made
  const auto of = [&](Activity activity) { return seconds[size_t(activity)]; };
  EXPECT_GT(of(Activity::kComputing), 0);
  EXPECT_GE(of(Activity::kData), 0.01);
  EXPECT_EQ(of(Activity::kNetwork), 0);
  EXPECT_EQ(of(Activity::kData), at_end[size_t(Activity::kData)]);
}

// A member that is ahead is lost before it has given its weights away: what a newcomer goes on from is
// its own iteration with its own weights.
TEST(Trainer, ANewcomerWhoseMeetingFailsGoesOnFromWhereItWas) {
  const auto train = [](bool disturbed) {
    TrainerOptions options =
        options_for("base_lr: 0.1 max_iter: 8 sync { mode: 'average' period: 4 }");
    options.survivors = true;
    const auto trainer = make_trainer(std::move(options));
    Numbers rows;
    if (disturbed) {
      auto groups = make_local_groups(2);
      std::thread ahead([&] {
        const int32_t place[2] = {4, 0};
        std::vector<int32_t> all(4);
        EXPECT_TRUE(all_gather(groups[0].get(), std::as_bytes(std::span(place)),
                               std::as_writable_bytes(std::span(all)))
                        .ok());
        groups[0]->cancel();
      });
      EXPECT_FALSE(trainer->run(groups[1].get(), {{"rows", &rows}}, {}).ok());
      ahead.join();
    }
    EXPECT_TRUE(trainer->run(nullptr, {{"rows", &rows}}, {}).ok());
    return weights_of(*trainer);
  };
  EXPECT_EQ(train(false), train(true));
}

// One bit of one rank's memory turns between the exchange and the check of the weights.
TEST(Trainer, ARankWhoseWeightsDivergeEndsTheRunOnAll) {
  constexpr int kRanks = 3, kOdd = 2;
  auto groups = make_local_groups(kRanks);
  std::array<Status, kRanks> ended;
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    ranks.emplace_back([&, rank] {
      TrainerOptions options =
          options_for("base_lr: 0.01 max_iter: 50 display: 1 sync { check_interval: 4 }");
      options.shards = kRanks;
      std::unique_ptr<Trainer> trainer;
      options.log = Logger([&](LogLevel, std::string_view text) {
        if (rank != kOdd || !text.starts_with("Iteration 7, lr")) return;
        auto& weight = const_cast<float&>(trainer->weights().front());
        weight = std::nextafter(weight, 1.F);
      });
      trainer = make_trainer(std::move(options));
      Numbers rows;
      ended[size_t(rank)] = trainer->run(groups[size_t(rank)].get(), {{"rows", &rows}}, {});
    });
  }
  for (std::thread& rank : ranks) rank.join();
  for (const Status& status : ended) {
    EXPECT_EQ(status.code(), ErrorCode::kInternal);
    EXPECT_THAT(status.message(), testing::HasSubstr("after iteration 8 the weights of rank 2 "));
  }
}

// An output that nobody reads may be a whole feature map: one number stands for it.
TEST(Trainer, AnOutputOfManyElementsIsReportedByItsMean) {
  const std::string data = R"(layer { name: "image" type: "DummyData" top: "image"
      dummy_data_param { shape { dim: 4 dim: 3 dim: 40 dim: 40 }
        data_filler { type: "constant" value: 1 } } }
    layer { name: "map" type: "Convolution" bottom: "image" top: "map"
      convolution_param { num_output: 8 kernel_size: 1
        weight_filler { type: "constant" value: 0.5 } } })";
  struct Results : EventSink {
    NamedValues trained, tested;
    void progress(const Progress& event) override { trained = event.outputs; }
    void test(const TestResult& event) override { tested = event.outputs; }
  } results;
  std::vector<std::string> lines;
  TrainerOptions options = options_for(
      "base_lr: 0 max_iter: 2 display: 1 test_interval: 1 test_iter: 1", data + kTinyNet);
  options.log = Logger([&](LogLevel, std::string_view text) { lines.emplace_back(text); });
  options.events = &results;
  const auto trainer = make_trainer(std::move(options));
  Numbers rows, tested;
  const std::vector<TestFeed> tests{{{{"rows", &tested}}, 1, true}};
  const Status status = trainer->run(nullptr, {{"rows", &rows}}, tests);
  ASSERT_TRUE(status.ok()) << status.message();
  using testing::ElementsAre, testing::Pair, testing::_;
  EXPECT_THAT(results.trained, ElementsAre(Pair("loss", _), Pair("map", 1.5)));
  EXPECT_THAT(results.tested, ElementsAre(Pair("loss", _), Pair("map", 1.5)));
  EXPECT_LT(lines.size(), 200U);
}

// So that the last line of a console has the scores of the weights that it leaves.
TEST(Trainer, TheLastProgressComesAfterTheLastTest) {
  struct Order : EventSink {
    std::vector<std::string> told;
    void progress(const Progress& event) override {
      told.push_back(fmt::format("progress {}", event.step));
    }
    void test(const TestResult& event) override {
      told.push_back(fmt::format("test {}", event.step));
    }
  } order;
  TrainerOptions options =
      options_for("base_lr: 0.1 max_iter: 2 display: 1 test_interval: 1 test_iter: 1");
  options.events = &order;
  const auto trainer = make_trainer(std::move(options));
  Numbers rows, tested;
  const std::vector<TestFeed> tests{{{{"rows", &tested}}, 1, true}};
  ASSERT_TRUE(trainer->run(nullptr, {{"rows", &rows}}, tests).ok());
  EXPECT_THAT(order.told,
              testing::ElementsAre("test 0", "progress 1", "test 1", "test 2", "progress 2"));
}

// The plans of tails lie in the memory of the full one, also when a tail comes first.
TEST(PlanSet, ATailTakesNoMemoryOfItsOwn) {
  const auto trainer = make_trainer(options_for("base_lr: 0.1"));
  const auto device = make_cpu_device();
  const Graph& graph = trainer->graph();
  std::vector<float> weights(size_t(graph.arena_size())), gradients(weights.size());
  const auto bytes = [&](const std::vector<int64_t>& order) {
    PlanSet plans(&graph, device.get(), param_pointers(graph, weights.data(), gradients.data()),
                  true);
    for (int64_t rows : order) EXPECT_TRUE(plans.at(rows).ok());
    return plans.bytes();
  };
  EXPECT_EQ(bytes({3, 0}), bytes({0, 3}));
}

}  // namespace
}  // namespace cafetiere
