// SPDX-License-Identifier: Apache-2.0
// Downpour: its formulas against a plain model in double precision, one worker against its solver's
// bits, its freedom from waiting, and what the loss of a rank costs.
#include "core/sync/downpour.h"

#include <gmock/gmock.h>

#include <barrier>
#include <cmath>
#include <limits>
#include <sstream>

#include "tests/sync/center_worker.h"

namespace cafetiere::test {
namespace {

using DownpourWorker = CenterWorker<Downpour>;

caffe::SyncParameter every(int push, int fetch) {
  caffe::SyncParameter sync;
  sync.set_mode("downpour");
  sync.set_n_push(push);
  sync.set_n_fetch(fetch);
  return sync;
}

class DownpourModel : public MomentumModel {
 public:
  DownpourModel(int workers, float rate)
      : MomentumModel(workers, rate, double(0.9f)), sums_(size_t(workers), Doubles(kFloats, 0.)) {}

  void iterate(int worker) {
    MomentumModel::iterate(worker, 1);
    Doubles& sum = sums_[size_t(worker)];
    for (size_t k = 0; k < kFloats; ++k) sum[k] -= state(worker).v[k];
  }
  void push(int worker) {
    Doubles& sum = sums_[size_t(worker)];
    for (size_t k = 0; k < kFloats; ++k) center_[k] += std::exchange(sum[k], 0.);
  }
  void fetch(int worker) { state(worker).w = center_; }

 private:
  std::vector<Doubles> sums_;
};

TEST(Downpour, OneWorkerThatPushesAndFetchesEachTimeIsItsSolverToTheBit) {
  for (const std::string type : {"SGD", "Nesterov", "Adam", "AdamW", "LAMB"}) {
    const float rate = rate_of(type);
    DownpourWorker worker(nullptr, every(1, 1), solver_of(type), rate);
    ASSERT_TRUE(worker.open().ok());
    ThreadPool pool(1);
    auto update = ArenaUpdate::make(solver_of(type), {{0, int64_t(kFloats)}}, int64_t(kFloats));
    Replicas alone({.group = nullptr, .floats = kFloats, .pool = &pool, .log = Logger()},
                   std::move(*update));
    Floats weights(kFloats, 0.f);
    for (int iter = 0; iter < 200; ++iter) {
      Floats gradient = Problem::gradient(0, iter, weights);
      alone.step({.iter = iter, .rate = rate}, gradient, weights);
      ASSERT_TRUE(worker.round(1000).ok());
      ASSERT_EQ(worker.weights(), weights) << type << ", iteration " << iter;
    }
    EXPECT_EQ(worker.center(), weights) << type;
  }
}

TEST(Downpour, PushesAndFetchesByTheirOwnIntervals) {
  DownpourWorker worker(nullptr, every(2, 3), solver_of("SGD"), 0.1f);
  ASSERT_TRUE(worker.open().ok());
  DownpourModel model(1, 0.1f);
  const std::vector<int> ends = {2, 3, 4, 6, 8, 9};
  for (int iter = 0; int end : ends) {
    for (; iter < end; ++iter) model.iterate(0);
    ASSERT_TRUE(worker.round(1000).ok());
    ASSERT_EQ(worker.iter(), end);
    if (end % 2 == 0) model.push(0);
    if (end % 3 == 0) model.fetch(0);
    expect_near(worker.weights(), model.weights(0));
    expect_near(worker.center(), model.center());
  }
  EXPECT_EQ(worker.mode().counts().made, 4);
}

TEST(Downpour, TheEndPushesWhatIsLeftAndGivesTheCentre) {
  caffe::SyncParameter sync = every(0, 0);
  sync.set_period(4);
  DownpourWorker worker(nullptr, sync, solver_of("SGD"), 0.1f);
  ASSERT_TRUE(worker.train(6).ok());
  DownpourModel model(1, 0.1f);
  for (int i = 0; i < 6; ++i) model.iterate(0);
  model.push(0);
  expect_near(worker.weights(), model.center());
  EXPECT_EQ(worker.mode().counts().made, 2);
}

TEST(Downpour, WantsOneShardARank) {
  ThreadPool pool(1);
  auto update = ArenaUpdate::make(solver_of("SGD"), {{0, 10}}, 10);
  const SyncContext context{
      .group = nullptr, .shards = 4, .floats = 10, .pool = &pool, .log = Logger()};
  const auto made = make_downpour(every(1, 1), context, std::move(*update));
  EXPECT_EQ(made.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(made.status().message(), testing::HasSubstr("\"downpour\""));
}

class DownpourTest : public testing::TestWithParam<Transport> {
 protected:
  void with_workers(int size, const caffe::SyncParameter& sync, float rate,
                    const std::function<Status(int, DownpourWorker&)>& body) {
    with_center_workers<Downpour>(GetParam(), size, sync, solver_of("SGD"), rate, body);
  }
};

TEST_P(DownpourTest, TwoWorkersInAGivenOrderFollowTheFormulas) {
  const std::vector<int> order = {0, 1, 1, 0, 0, 1, 0, 1, 1, 1, 0, 0};
  DownpourModel model(2, 0.05f);
  std::barrier turn(2);
  with_workers(2, every(1, 2), 0.05f, [&](int rank, DownpourWorker& worker) -> Status {
    worker.center();  // both have begun
    for (int next : order) {
      turn.arrive_and_wait();
      if (next != rank) continue;
      CFT_TRY(worker.round(1000));
      model.iterate(rank);
      model.push(rank);
      if (worker.iter() % 2 == 0) model.fetch(rank);
      expect_near(worker.weights(), model.weights(rank));
    }
    turn.arrive_and_wait();
    expect_near(worker.center(), model.center());
    Floats weights = worker.weights();
    CFT_TRY(worker.leave(weights));
    expect_near(weights, model.center());
    EXPECT_EQ(worker.mode().counts().made, 6);
    return {};
  });
}

TEST_P(DownpourTest, NobodyWaitsForASlowWorker) {
  std::barrier turn(2);
  with_workers(2, every(2, 2), 0.005f, [&](int rank, DownpourWorker& worker) -> Status {
    worker.center();
    while (rank == 0 && worker.iter() < 100) CFT_TRY(worker.round(100));
    turn.arrive_and_wait();  // rank 1 does its first iteration only now
    return worker.train(100);
  });
}

TEST_P(DownpourTest, NoPushIsLostAndAllEndWithTheSameWeights) {
  constexpr int kSize = 3;
  std::vector<Downpour::Counts> counts(kSize);
  std::vector<Floats> weights(kSize);
  with_workers(kSize, every(2, 3), 0.003f, [&](int rank, DownpourWorker& worker) -> Status {
    const double before = Problem::loss(worker.weights());
    CFT_TRY(worker.train(200 + 50 * rank));
    EXPECT_LT(Problem::loss(worker.weights()), 0.05 * before);
    counts[size_t(rank)] = worker.mode().counts();
    weights[size_t(rank)] = worker.weights();
    return {};
  });
  int64_t made = 0;
  for (const auto& c : counts) made += c.made;
  EXPECT_EQ(made, 100 + 125 + 150);
  for (size_t rank = 0; rank < kSize; ++rank) EXPECT_EQ(counts[rank].served[rank], made);
  EXPECT_EQ(weights[1], weights[0]);
  EXPECT_EQ(weights[2], weights[0]);
}

INSTANTIATE_TEST_SUITE_P(Transports, DownpourTest,
                         testing::Values(Transport::kLocal, Transport::kTcp, Transport::kEncrypted),
                         transport_name);

constexpr int kPushes = 2000;

/// A worker whose every update adds 1 to all weights, to a center that begins at 0: the center of a
/// slice counts the pushes. It makes `pushes`, tells the victim's end between, and then what it has
/// of the slices of ranks 0 and 1: the least and the largest value of each.
Status count_pushes(
    Group& group, int pushes, const std::function<void(int)>& after = [](int) {}) {
  ThreadPool pool(1);
  caffe::SolverParameter plain;
  CFT_ASSIGN(ArenaUpdate update,
             ArenaUpdate::make(plain, {{0, int64_t(kFloats)}}, int64_t(kFloats)));
  Downpour mode(
      every(1, 1),
      {.group = &group, .shards = group.size(), .floats = kFloats, .pool = &pool, .log = Logger()},
      std::move(update));
  CFT_TRY(mode.open());
  Floats weights(kFloats, 0.f), gradient(kFloats);
  for (int made = 0; made < pushes; ++made) {
    mode.begin_shard(group.rank(), weights);
    std::ranges::fill(gradient, -1.f);
    const UpdateStep step{.iter = made, .rate = 1};
    CFT_TRY(mode.gradient(step, 0, gradient, weights));
    CFT_TRY(mode.end_round(step, gradient, weights));
    after(made);
  }
  CFT_TRY(mode.consolidate(true, weights));
  CFT_TRY(mode.gather_at_end({}).status());
  std::string told;
  for (size_t begin : {size_t(0), kArenaBlock}) {
    const auto [low, high] =
        std::ranges::minmax(std::span(weights).subspan(begin, kArenaBlock / 2));
    told += fmt::format("{:.0f} {:.0f} ", double(low), double(high));
  }
  return {ErrorCode::kOk, told};
}

TEST(DownpourFault, TheLastPushOfADeadRankIsInEachSliceWholeOrNotAtAll) {
  constexpr int kEndless = std::numeric_limits<int>::max();
  Children children(3, 60'000, [](Group& group) {
    return count_pushes(group, group.rank() == 2 ? kEndless : kPushes);
  });
  const Status mine = count_pushes(children.group(), kPushes, [&](int made) {
    if (made == kPushes / 4) children.signal(2, SIGKILL);
  });
  ASSERT_TRUE(mine.ok()) << mine.message();
  EXPECT_EQ(children.report(1), "0 " + mine.message());
  std::istringstream in(mine.message());
  int64_t low[2], high[2];
  in >> low[0] >> high[0] >> low[1] >> high[1];
  ASSERT_TRUE(in) << mine.message();
  EXPECT_EQ(low[0], high[0]);
  EXPECT_EQ(low[1], high[1]);
  EXPECT_GT(low[0], 2 * kPushes) << "the victim has pushed nothing";
  EXPECT_LE(std::abs(low[0] - low[1]), 1);
}

}  // namespace
}  // namespace cafetiere::test
