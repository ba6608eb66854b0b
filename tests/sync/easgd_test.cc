// SPDX-License-Identifier: Apache-2.0
// EASGD: its formulas against a plain model in double precision, its freedom from waiting, and what
// the loss of a rank costs.
#include "core/sync/easgd.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <limits>
#include <sstream>

#include "tests/sync/center_worker.h"

namespace cafetiere::test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::StartsWith;

caffe::SyncParameter settings(int period, float rate) {
  caffe::SyncParameter sync;
  sync.set_mode("easgd");
  sync.set_period(period);
  sync.set_moving_rate(rate);
  return sync;
}

using Worker = CenterWorker<Easgd>;

class Model : public MomentumModel {
 public:
  using MomentumModel::MomentumModel;

  void exchange(int worker, double a, double af) {
    Doubles& w = state(worker).w;
    for (size_t k = 0; k < kFloats; ++k) {
      const double before = center_[k];
      center_[k] = (1 - af) * before + af * w[k];
      w[k] = (1 - a) * w[k] + a * before;
    }
  }
};

TEST(Decay, MultipliesEverySoManyIterations) {
  const Decay decay{.start = 0.8f, .rate = 0.5f, .step = 10, .limit = 2};
  EXPECT_FLOAT_EQ(decay.at(9), 0.8f);
  EXPECT_FLOAT_EQ(decay.at(10), 0.4f);
  EXPECT_FLOAT_EQ(decay.at(29), 0.2f);
  EXPECT_FLOAT_EQ(decay.at(1000), 0.2f);
  EXPECT_FLOAT_EQ((Decay{.start = 1, .rate = 0.5f, .step = 10}).at(100), 1.f / 1024);
  EXPECT_FLOAT_EQ((Decay{.start = 0.3f, .rate = 0.5f}).at(1000), 0.3f);
}

TEST(ExchangeClock, FixedPeriod) {
  ExchangeClock clock(3, false);
  for (int window = 0; window < 2; ++window) {
    EXPECT_FALSE(clock.running());
    EXPECT_EQ(clock.remaining(), 3);
    clock.tick(100);
    EXPECT_EQ(clock.remaining(), 2);
    clock.tick(100);
    EXPECT_FALSE(clock.due());
    clock.tick(100);
    EXPECT_TRUE(clock.due());
    clock.exchanged();
  }
}

TEST(ExchangeClock, AdaptivePeriodGrowsAsTheLossFalls) {
  ExchangeClock clock(2, true);
  clock.tick(5);
  EXPECT_FALSE(clock.due());
  clock.tick(3);
  EXPECT_TRUE(clock.due());
  clock.exchanged();  // from here on whenever the losses exceed 8
  std::vector<int> windows;
  for (double loss : {4., 2., 1.}) {
    int iterations = 0;
    for (; !clock.due(); ++iterations) {
      EXPECT_EQ(clock.remaining(), 1);
      clock.tick(loss);
    }
    clock.exchanged();
    windows.push_back(iterations);
  }
  EXPECT_THAT(windows, testing::ElementsAre(3, 5, 9));
}

TEST(Easgd, TellsEachTimeThatAnAdaptivePeriodHasDoubled) {
  std::vector<std::string> told;
  const Logger log([&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kNotice) told.emplace_back(text);
  });
  caffe::SyncParameter sync = settings(2, 0.4f);
  for (const bool adaptive : {false, true}) {
    sync.set_adaptive_period(adaptive);
    Worker worker(nullptr, sync, solver_of("SGD"), 0.1f, log);
    ASSERT_TRUE(worker.open().ok());
    ASSERT_TRUE(worker.train(60).ok());
    if (!adaptive) {
      EXPECT_TRUE(told.empty());
    }
  }
  ASSERT_FALSE(told.empty());
  EXPECT_THAT(told.front(), HasSubstr("the adaptive period grown from 2 to "));
}

TEST(Easgd, OneWorkerFollowsTheFormulas) {
  caffe::SyncParameter sync = settings(3, 0.4f);
  sync.set_decay_rate(0.5f);
  sync.set_decay_step(6);
  sync.set_decay_limit(1);
  sync.set_server_factor(0.75f);
  sync.set_factor_decay_rate(0.25f);
  sync.set_factor_decay_step(9);
  Worker worker(nullptr, sync, solver_of("SGD"), 0.1f);
  ASSERT_TRUE(worker.open().ok());
  Model model(1, 0.1f, double(0.9f));
  const std::vector<std::pair<double, double>> a_and_f = {
      {0.4, 0.75}, {0.2, 0.75}, {0.2, 0.1875}, {0.2, 0.1875}};
  for (const auto& [a, f] : a_and_f) {
    ASSERT_TRUE(worker.round(1000).ok());
    model.iterate(0, 3);
    model.exchange(0, a, a * f);
    expect_near(worker.weights(), model.weights(0));
    expect_near(worker.center(), model.center());
  }
  EXPECT_EQ(worker.mode().counts().made, 4);
  EXPECT_THAT(worker.mode().counts().served, testing::ElementsAre(4));
}

TEST(Easgd, TheEndExchangesWhatIsLeftAndGivesTheCentre) {
  Worker worker(nullptr, settings(4, 0.5f), solver_of("SGD"), 0.1f);
  ASSERT_TRUE(worker.train(6).ok());
  Model model(1, 0.1f, double(0.9f));
  for (int iterations : {4, 2}) {
    model.iterate(0, iterations);
    model.exchange(0, 0.5, 0.5);
  }
  expect_near(worker.weights(), model.center());
}

TEST(Easgd, ReadingTheCentreLeavesTheWorkerAsItWas) {
  Worker with(nullptr, settings(2, 0.3f), solver_of("SGD"), 0.1f);
  Worker without(nullptr, settings(2, 0.3f), solver_of("SGD"), 0.1f);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(with.round(1000).ok());
    ASSERT_TRUE(without.round(1000).ok());
    Floats tested = with.weights();
    ASSERT_TRUE(with.mode().consolidate(false, tested).ok());
    with.mode().begin_shard(0, tested);
    EXPECT_EQ(tested, without.weights());
  }
}

TEST(Easgd, WantsOneShardARank) {
  ThreadPool pool(1);
  auto update = ArenaUpdate::make(solver_of("SGD"), {{0, 10}}, 10);
  const SyncContext context{
      .group = nullptr, .shards = 4, .floats = 10, .pool = &pool, .log = Logger()};
  const auto made = make_easgd(settings(1, 0.1f), context, std::move(*update));
  EXPECT_EQ(made.status().code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(made.status().message(), HasSubstr("4 shards for 1 ranks"));
}

class EasgdTest : public testing::TestWithParam<Transport> {
 protected:
  /// Runs body(rank, worker) on a thread a rank; nobody leaves before all are done.
  void with_workers(int size, const caffe::SyncParameter& sync,
                    const caffe::SolverParameter& solver, float rate,
                    const std::function<Status(int, Worker&)>& body) {
    with_center_workers<Easgd>(GetParam(), size, sync, solver, rate, body);
  }
};

TEST_P(EasgdTest, TwoWorkersInAGivenOrderFollowTheFormulas) {
  const std::vector<int> order = {0, 1, 1, 0, 0, 1, 0, 1};
  caffe::SyncParameter sync = settings(2, 0.3f);
  sync.set_server_factor(0.5f);
  Model model(2, 0.1f, double(0.9f));
  std::barrier turn(2);
  with_workers(2, sync, solver_of("SGD"), 0.1f, [&](int rank, Worker& worker) -> Status {
    worker.center();  // both have begun
    for (int next : order) {
      turn.arrive_and_wait();
      if (next != rank) continue;
      CFT_TRY(worker.round(1000));
      model.iterate(rank, 2);
      model.exchange(rank, 0.3, 0.15);
      expect_near(worker.weights(), model.weights(rank));
    }
    turn.arrive_and_wait();
    expect_near(worker.center(), model.center());
    Floats weights = worker.weights();
    CFT_TRY(worker.leave(weights));
    expect_near(weights, model.center());
    EXPECT_EQ(worker.mode().counts().made, 4);
    return {};
  });
}

TEST_P(EasgdTest, NobodyWaitsForASlowWorker) {
  std::barrier turn(2);
  with_workers(2, settings(2, 0.3f), solver_of("SGD"), 0.01f,
               [&](int rank, Worker& worker) -> Status {
                 worker.center();
                 while (rank == 0 && worker.iter() < 100) CFT_TRY(worker.round(100));
                 turn.arrive_and_wait();  // rank 1 does its first iteration only now
                 return worker.train(100);
               });
}

TEST_P(EasgdTest, NoExchangeIsLostAndAllEndWithTheSameWeights) {
  constexpr int kSize = 3;
  std::vector<Easgd::Counts> counts(kSize);
  std::vector<Floats> weights(kSize);
  caffe::SyncParameter sync = settings(2, 0.2f);
  sync.set_adaptive_period(true);
  with_workers(kSize, sync, solver_of("SGD"), 0.01f, [&](int rank, Worker& worker) -> Status {
    CFT_TRY(worker.train(200 + 50 * rank));
    counts[size_t(rank)] = worker.mode().counts();
    weights[size_t(rank)] = worker.weights();
    return {};
  });
  int64_t made = 0;
  for (const auto& c : counts) made += c.made;
  for (size_t rank = 0; rank < kSize; ++rank) EXPECT_EQ(counts[rank].served[rank], made);
  EXPECT_EQ(weights[1], weights[0]);
  EXPECT_EQ(weights[2], weights[0]);
}

TEST_P(EasgdTest, AllSolversLearn) {
  for (const std::string type :
       {"SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam", "AdamW", "LAMB"}) {
    const float rate = rate_of(type);
    with_workers(3, settings(5, 0.2f), solver_of(type), rate, [&](int, Worker& worker) -> Status {
      const double before = Problem::loss(worker.weights());
      CFT_TRY(worker.train(400));
      EXPECT_LT(Problem::loss(worker.weights()), 0.05 * before) << type;
      return {};
    });
  }
}

/// The histories that a state shows, by worker.
Result<std::vector<HistoryArenas>> histories_in(ModeState& state) {
  std::vector<HistoryArenas> all(state.replicas, HistoryArenas(state.kinds, Floats(kFloats)));
  for (size_t shard = 0; shard < all.size(); ++shard) {
    for (size_t kind = 0; kind < state.kinds; ++kind) {
      const size_t half = kFloats / 2;
      const std::span<float> out(all[shard][kind]);
      const StateArray array{StateArray::kReplica, kind, shard};
      CFT_TRY(state.read(array, 0, out.first(half)));
      CFT_TRY(state.read(array, half, out.subspan(half)));
    }
  }
  return all;
}

TEST_P(EasgdTest, StateHoldsTheHistoryOfAllWorkers) {
  std::vector<HistoryArenas> kept;
  with_workers(3, settings(5, 0.2f), solver_of("Adam"), 0.01f, [&](int rank, Worker& worker) {
    return worker.train(20, [&, rank](ModeState& state) -> Status {
      EXPECT_EQ(rank, 0);
      EXPECT_EQ(state.mode, "easgd");
      CFT_ASSIGN(kept, histories_in(state));
      Floats first(kFloats);
      CFT_TRY(state.read({StateArray::kHistory}, 0, first));
      EXPECT_EQ(first, kept[0][0]);
      return {};
    });
  });
  ASSERT_EQ(kept.size(), 3u);
  for (const HistoryArenas& worker : kept) EXPECT_EQ(worker.size(), 2u);
  EXPECT_NE(kept[0], kept[1]);
  EXPECT_NE(kept[1], kept[2]);
  PlacedState placed{.history = {2, StateParts()}};
  for (const HistoryArenas& worker : kept) {
    auto& arrays = placed.replicas.emplace_back();
    for (const Floats& kind : worker) arrays.push_back({{0, 0, kFloats, kind.data()}});
  }
  with_workers(3, settings(5, 0.2f), solver_of("Adam"), 0.01f, [&](int, Worker& worker) -> Status {
    CFT_TRY(show_placed(nullptr, placed,
                        [&](ModeState& state) { return worker.mode().restore(state); }));
    return worker.train(0, [&](ModeState& state) -> Status {
      CFT_ASSIGN(const auto again, histories_in(state));
      EXPECT_EQ(again, kept);
      return {};
    });
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, EasgdTest,
                         testing::Values(Transport::kLocal, Transport::kTcp, Transport::kEncrypted),
                         transport_name);

constexpr int kExchanges = 200;
constexpr int kPeriod = 5;

/// A worker that says what it did: exchanges made, served of the slices of ranks 0 to 2, and the loss
/// of the weights it ends with in millionths. The ranks of `endless` never finish by themselves.
Status train_and_tell(
    Group& group, const std::vector<int>& endless,
    const std::function<void(Worker&)>& after_round = [](Worker&) {}) {
  Worker worker(&group, settings(kPeriod, 0.2f), solver_of("SGD"), 0.01f);
  CFT_TRY(worker.open());
  const bool forever = std::ranges::count(endless, group.rank()) > 0;
  while (forever || worker.iter() < kPeriod * kExchanges) {
    CFT_TRY(worker.round(std::numeric_limits<int>::max()));
    after_round(worker);
  }
  CFT_TRY(worker.train(0));
  const Easgd::Counts c = worker.mode().counts();
  return {ErrorCode::kOk, fmt::format("{} {} {} {} {:.0f}", c.made, c.served[0], c.served[1],
                                      c.served[2], 1e6 * Problem::loss(worker.weights()))};
}

struct Told {
  int64_t made = 0, served[3] = {}, millionths = 0;
};

Told read_told(const std::string& text) {
  Told told;
  std::istringstream in(text);
  in >> told.made >> told.served[0] >> told.served[1] >> told.served[2] >> told.millionths;
  EXPECT_TRUE(in) << text;
  return told;
}

/// Sends `number` to rank `victim` of three when rank 0 has made 20 of 200 exchanges; what rank 0 and
/// the other one tell.
std::pair<Told, Told> train_with_a_victim(Children* children, int victim, int number) {
  const Status mine = train_and_tell(children->group(), {}, [&](Worker& worker) {
    if (worker.iter() == 20 * kPeriod) children->signal(victim, number);
  });
  EXPECT_TRUE(mine.ok()) << mine.message();
  const std::string other = children->report(3 - victim);
  EXPECT_THAT(other, StartsWith("0 "));
  return {read_told(mine.message()), read_told(other.substr(2))};
}

/// The survivors made all their exchanges, with every slice: those of the victim's with the victim as
/// long as it lived, then with its successor in the ring.
void expect_accounted(const Told& zero, const Told& other, int victim) {
  const int survivor = 3 - victim;
  EXPECT_EQ(zero.made, kExchanges);
  EXPECT_EQ(other.made, kExchanges);
  const int64_t of_victim = zero.served[0] - 2 * kExchanges;
  EXPECT_GT(of_victim, 0);
  EXPECT_LE(std::abs(other.served[survivor] - 2 * kExchanges - of_victim), 1);
  const Told& successor = victim == 1 ? other : zero;
  const Told& bystander = victim == 1 ? zero : other;
  EXPECT_GT(successor.served[victim], 0);
  EXPECT_LE(successor.served[victim], 2 * kExchanges - 20);
  EXPECT_EQ(bystander.served[victim], 0);
  for (const Told& told : {zero, other}) EXPECT_LT(told.millionths, 10'000);
}

TEST(EasgdFault, AKilledRankCostsItsShareOnly) {
  for (int victim : {1, 2}) {
    SCOPED_TRACE(victim);
    Children children(3, 60'000, [&](Group& group) { return train_and_tell(group, {victim}); });
    const auto [zero, other] = train_with_a_victim(&children, victim, SIGKILL);
    expect_accounted(zero, other, victim);
  }
}

TEST(EasgdFault, AStoppedRankIsGivenUpAfterTheTimeOutAndLearnsIt) {
  Children children(3, 2000, [](Group& group) { return train_and_tell(group, {2}); });
  const auto [zero, other] = train_with_a_victim(&children, 2, SIGSTOP);
  expect_accounted(zero, other, 2);
  children.signal(2, SIGCONT);
  EXPECT_THAT(children.report(2), HasSubstr("was stalled"));
}

TEST(EasgdFault, TheLastOneGoesOnAlone) {
  Children children(3, 60'000, [](Group& group) { return train_and_tell(group, {1, 2}); });
  const Status mine = train_and_tell(children.group(), {}, [&](Worker& worker) {
    if (worker.iter() == 20 * kPeriod) children.signal(1, SIGKILL);
    if (worker.iter() == 40 * kPeriod) children.signal(2, SIGKILL);
  });
  ASSERT_TRUE(mine.ok()) << mine.message();
  const Told zero = read_told(mine.message());
  EXPECT_EQ(zero.made, kExchanges);
  EXPECT_THAT(zero.served, Each(testing::Gt(0)));
  EXPECT_LT(zero.millionths, 10'000);
}

}  // namespace
}  // namespace cafetiere::test
