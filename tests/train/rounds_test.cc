// SPDX-License-Identifier: Apache-2.0
// Replicas that are called a round at a time come to the bits of ranks in a group: also where one is
// lost and made anew, and where sums are formed by groups of shards.
#include "core/train/rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "core/model/weights.h"
#include "core/sync/shuffle.h"
#include "tests/train/jobs.h"

namespace cafetiere {
namespace {

constexpr int kShards = 5;

Job job(const std::string& sync) {
  return {.net = kMixedNet,
          .pixels = 144,
          .max_iter = 14,
          .solver = std::string(kSolver) + " sync { period: 4 " + sync + " }",
          .shards = kShards};
}

ReplicaOptions options(const Job& job, int shard) {
  ReplicaOptions o;
  o.solver = *parse_solver(job.solver, "solver");
  o.net = *parse_net(job.net, "net");
  o.has_net = true;
  o.shard = shard;
  o.shards = job.shards;
  o.max_iter = job.max_iter;
  return o;
}

/// The rows of a shard in their order, as somebody who only has row_key() finds them.
RowTable rows_of(const Job& job, int shard) {
  const RowTable all = part_of_rows(job, 0);
  std::vector<int64_t> order(size_t(all.rows()));
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int64_t row) { return row_key(all, row, 7); });
  RowTable mine(all.schema());
  for (size_t at = size_t(shard); at < order.size(); at += size_t(job.shards)) {
    EXPECT_TRUE(mine.append(1, all.row(order[at])).ok());
  }
  return mine;
}

std::unique_ptr<Replica> replica(const Job& job, int shard) {
  auto made = Replica::create(options(job, shard));
  EXPECT_TRUE(made.ok()) << made.status().message();
  const Status fed = (*made)->feed(rows_of(job, shard), job.rows);
  EXPECT_TRUE(fed.ok()) << fed.message();
  return std::move(*made);
}

/// A training in rounds on which a test can lay hands.
struct Training {
  explicit Training(const Job& of) : job(of), rounds(*Rounds::create(options(of, 0))) {
    for (int shard = 0; shard < job.shards; ++shard) replicas.push_back(replica(job, shard));
  }

  std::vector<float> train(int shard, int iter, int steps, std::vector<float> shared) {
    const auto report = replicas[size_t(shard)]->round(iter, steps, shared);
    EXPECT_TRUE(report.ok()) << report.status().message();
    for (const auto& [epoch, rows] : report->rows) rows_used += rows;
    return shared;
  }

  /// One round; sums are formed by groups of `group` shards.
  void round(int group) {
    starts.push_back({rounds->iter(), {rounds->shared().begin(), rounds->shared().end()}});
    std::vector<std::vector<float>> sums;
    for (int first = 0; first < job.shards; first += group) {
      std::vector<std::vector<float>> trained;
      for (int shard = first; shard < std::min(first + group, job.shards); ++shard) {
        trained.push_back(train(shard, rounds->iter(), rounds->length(), starts.back().second));
      }
      sums.push_back(*tree_sum_of(spans(trained)));
    }
    const Status ended = rounds->end_round(spans(sums));
    EXPECT_TRUE(ended.ok()) << ended.message();
  }

  static std::vector<std::span<const float>> spans(const std::vector<std::vector<float>>& arrays) {
    return {arrays.begin(), arrays.end()};
  }

  Outcome outcome() {
    std::vector<std::vector<float>> histories;
    for (const auto& r : replicas) {
      if (rounds->rule() != HistoryRule::kKept) break;
      std::vector<float>& all = histories.emplace_back();
      for (const auto& kind : r->history()) all.insert(all.end(), kind.begin(), kind.end());
    }
    return {*rounds->model(), *rounds->state(spans(histories)), {}, {}};
  }

  Job job;
  std::unique_ptr<Rounds> rounds;
  std::vector<std::unique_ptr<Replica>> replicas;
  std::vector<std::pair<int, std::vector<float>>> starts;  // of the rounds so far
  int64_t rows_used = 0;
};

Outcome train_in_rounds(const Job& job, int group) {
  Training training(job);
  while (training.rounds->length() > 0) training.round(group);
  return training.outcome();
}

void expect_same_weights(const Outcome& a, const Outcome& b, const std::string& what) {
  EXPECT_TRUE(a.model == b.model) << "weights differ: " << what;
  EXPECT_TRUE(a.state == b.state) << "history differs: " << what;
}

TEST(Rounds, AreTheBitsOfRanksInAGroup) {
  for (const char* sync : {"mode: 'average'", "mode: 'average' history: 'averaged'",
                           "mode: 'average' history: 'reset'", "mode: 'diloco'"}) {
    Job two = job(sync);
    two.ranks = 2;
    expect_same_weights(train_in_rounds(job(sync), 1), train(two), sync);
  }
}

// 129 rows of two shards in batches of 64: the second shard has none in every other iteration, where
// momentum and weight decay must not move its weights either.
TEST(Rounds, AShardWithoutRowsSitsTheIterationOut) {
  Job of{.net = R"(name: "small"
           layer { name: "rows" type: "MemoryData" top: "data" top: "label"
             memory_data_param { batch_size: 64 channels: 1 height: 4 width: 4 } }
           layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
             inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
           layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })",
         .pixels = 16,
         .max_iter = 8,
         .solver = R"(base_lr: 0.0001 momentum: 0.9 weight_decay: 0.01 lr_policy: "fixed"
           random_seed: 7 sync { mode: "average" period: 2 })",
         .shards = 2,
         .rows = 129};
  const Outcome rounds = train_in_rounds(of, 1);
  of.ranks = 2;
  expect_same_weights(rounds, train(of), "129 rows");
}

/// Two embeddings of a byte, which may end as posterior means.
std::string embeddings(bool posterior) {
  std::string net = R"(name: "embeddings"
    layer { name: "rows" type: "MemoryData" top: "data" top: "label"
      memory_data_param { batch_size: 32 channels: 1 height: 1 width: 1 } })";
  for (const std::string name : {"first", "second"}) {
    net += "layer { type: 'Embed' name: '" + name + "' bottom: 'data' top: '" + name +
           "' embed_param { num_output: 5 input_dim: 256 bias_term: false"
           " weight_filler { type: 'gaussian' std: 0.05 } ";
    if (posterior) {
      net += "posterior { prototypes: 20 nearest: 6 output: '" + name +
             "/flat' scores: 'ip' labels: 'label' } ";
    }
    net += "} } layer { type: 'Flatten' name: '" + name + "/flat' bottom: '" + name + "' top: '" +
           name + "/flat' }";
  }
  return net + R"(
    layer { name: "both" type: "Concat" bottom: "first/flat" bottom: "second/flat" top: "both" }
    layer { name: "ip" type: "InnerProduct" bottom: "both" top: "ip"
      inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";
}

TEST(Rounds, EndWithThePosteriorMeansOfRanksInAGroup) {
  std::vector<std::string> models;
  for (const bool posterior : {false, true}) {
    const std::string net = embeddings(posterior);
    Job of = job("mode: 'average'");
    of.net = net.c_str();
    of.pixels = 1;
    Training training(of);
    while (training.rounds->length() > 0) training.round(2);
    int taken = 0;
    for (; training.rounds->posterior_due(); ++taken) {
      const auto begun = training.rounds->begin_posterior();
      ASSERT_TRUE(begun.ok()) << begun.status().message();
      std::vector<std::vector<float>> sums;
      for (const auto& r : training.replicas) sums.push_back(*r->sum_posterior(*begun));
      ASSERT_TRUE(training.rounds->end_posterior(Training::spans(sums)).ok());
    }
    EXPECT_EQ(taken, posterior ? 2 : 0);
    of.ranks = 2;
    models.push_back(training.outcome().model);
    expect_same_weights(training.outcome(), train(of), net);
  }
  EXPECT_NE(models[0], models[1]);
}

TEST(Rounds, TheSizeOfGroupsDoesNotShowInTheSum) {
  const Job of = job("mode: 'diloco'");
  const Outcome alone = train_in_rounds(of, 1);
  expect_same_weights(alone, train_in_rounds(of, 2), "groups of 2");
  expect_same_weights(alone, train_in_rounds(of, 4), "groups of 4");
}

TEST(Rounds, ALostReplicaIsMadeAnewByRepeatingItsRounds) {
  const Job of = job("mode: 'average'");
  const Outcome undisturbed = train_in_rounds(of, 1);
  Training training(of);
  training.round(1);
  training.round(1);
  training.replicas[3] = replica(of, 3);
  for (const auto& [iter, shared] : training.starts) training.train(3, iter, 4, shared);
  while (training.rounds->length() > 0) training.round(1);
  expect_same_weights(undisturbed, training.outcome(), "a replica was lost");
}

TEST(Rounds, GoOnFromAState) {
  const Job of = job("mode: 'diloco'");
  const Outcome undisturbed = train_in_rounds(of, 1);
  Training first(of);
  first.round(1);
  const Outcome stored = first.outcome();
  const auto weights = parse_weights(std::as_bytes(std::span(stored.model)));
  const std::shared_ptr<StateSource> state =
      source_of(*parse_solver_state(std::as_bytes(std::span(stored.state))));
  Training second(of);
  EXPECT_TRUE(second.rounds->restore(*weights, state).ok());
  for (const auto& r : second.replicas) EXPECT_TRUE(r->restore(state).ok());
  while (second.rounds->length() > 0) second.round(1);
  expect_same_weights(undisturbed, second.outcome(), "resumed");
}

TEST(Rounds, EveryRowIsUsedOnceAnEpoch) {
  Job of = job("");
  constexpr int kBatches = 63;  // of 32 rows, for the largest shard's 2002
  of.max_iter = kBatches;
  of.solver = "base_lr: 0.01 lr_policy: 'fixed' random_seed: 7 sync { mode: 'average' period: 63 }";
  Training training(of);
  training.round(1);
  EXPECT_EQ(training.rounds->length(), 0);
  EXPECT_EQ(training.rows_used, kRows);
}

TEST(Rounds, AReplicaTellsItsStepInMidRound) {
  Job long_round = job("mode: 'average'");
  long_round.max_iter = 1 << 20;
  const auto shard = replica(long_round, 0);
  std::vector<float> shared(Rounds::create(options(long_round, 0)).value()->shared().size());
  Status ended;
  std::thread thread([&] { ended = shard->round(3, long_round.max_iter - 3, shared).status(); });
  while (shard->step() < 10) std::this_thread::yield();
  shard->cancel();
  thread.join();
  EXPECT_EQ(ended.code(), ErrorCode::kCancelled) << ended.message();
}

TEST(Rounds, RefusesModesWithoutRounds) {
  const auto refused = Rounds::create(options(job("mode: 'allreduce'"), 0));
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("use \"average\" or \"diloco\""), std::string::npos);
}

TEST(Rounds, RefusesAPrecisionToAgreeOn) {
  Job open = job("mode: 'average'");
  open.solver += " precision: 'auto_float32'";
  for (const Status& refused :
       {Rounds::create(options(open, 0)).status(), Replica::create(options(open, 0)).status()}) {
    EXPECT_NE(refused.message().find("use float32 or bf16x6"), std::string::npos);
  }
}

}  // namespace
}  // namespace cafetiere
