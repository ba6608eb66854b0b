// SPDX-License-Identifier: Apache-2.0
// What the objects of the C interface say, and what of it becomes an event.
#include <gmock/gmock.h>
#include <sys/socket.h>

#include <functional>
#include <mutex>

#include "core/comm/socket.h"
#include "tests/capi/handed.h"
#include "tests/capi/small_training.h"

namespace cafetiere {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Takes down what it hears.
struct Listener {
  std::mutex mutex;
  std::vector<std::string> events, log;
  std::function<int(const nlohmann::json& event)> answer = [](const auto&) { return 0; };

  static int event(void* context, const char* json) {
    auto* self = static_cast<Listener*>(context);
    const auto event = nlohmann::json::parse(json);
    const std::lock_guard lock(self->mutex);
    if (event["event"] == "log") self->events.push_back(event.dump());
    return self->answer(event);
  }
  static void hear(void* context, int level, const char* text) {
    auto* self = static_cast<Listener*>(context);
    const std::lock_guard lock(self->mutex);
    self->log.push_back(std::to_string(level) + " " + text);
  }
};

/// One rank of a training.
struct Rank {
  Listener listener;
  cft_trainer* trainer = nullptr;

  void make(int rank, int size, const std::string& sync, const std::string& solver) {
    const cft_callbacks callbacks{sizeof(cft_callbacks), &listener, &Listener::event, nullptr};
    nlohmann::json options = small_options(rank, size, sync);
    options["solver"] = solver;
    ASSERT_EQ(cft_trainer_create(options.dump().c_str(), &callbacks, &trainer), 0)
        << cft_last_error();
  }
  ~Rank() { cft_trainer_destroy(trainer); }
};

/// Trains on two ranks, one a thread; what cft_trainer_run() gave on each.
std::vector<int> train(std::vector<Rank>& ranks, const std::vector<cft_group*>& groups) {
  std::vector<int> codes(ranks.size());
  std::vector<std::thread> threads;
  for (size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      cft_rows* rows = small_rows(int(r));
      codes[r] = cft_trainer_run(ranks[r].trainer, groups[r], rows);
      cft_rows_destroy(rows);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (cft_group* group : groups) cft_group_destroy(group);
  return codes;
}

std::vector<Rank> two_ranks(const std::string& sync, const std::string& solver = kSmallSolver) {
  std::vector<Rank> ranks(2);
  for (int rank = 0; rank < 2; ++rank) ranks[size_t(rank)].make(rank, 2, sync, solver);
  return ranks;
}

TEST(Log, ToldByTheTrainerWhatModeAutoTakes) {
  std::vector<Rank> ranks = two_ranks("mode: 'auto'");
  ASSERT_EQ(cft_trainer_log(ranks[1].trainer, &Listener::hear, &ranks[1].listener), 0);
  EXPECT_THAT(train(ranks, small_groups(2)), testing::Each(0)) << cft_last_error();
  EXPECT_THAT(ranks[0].listener.events,
              Contains(AllOf(HasSubstr("Mode auto: an iteration takes"), HasSubstr("\"info\""))));
  EXPECT_THAT(ranks[0].listener.events, Not(Contains(HasSubstr("Creating"))));
  EXPECT_THAT(ranks[1].listener.events, IsEmpty()) << "rank 0 alone has events";
  EXPECT_THAT(ranks[1].listener.log, Contains(HasSubstr("0 Creating training net")))
      << "was said before anybody listened";
  EXPECT_THAT(ranks[1].listener.log, Contains(HasSubstr("0 Mode auto")));
}

TEST(Log, ToldByTheTrainerThatARankIsLost) {
  std::vector<Rank> ranks =
      two_ranks("mode: 'easgd' period: 1",
                "base_lr: 0.01 lr_policy: 'fixed' max_iter: 1000000000 display: 1 random_seed: 3");
  // Rank 1 stops in mid-run, and rank 0 goes on until it has said so.
  ranks[0].listener.answer = [&](const nlohmann::json& event) {
    if (event["event"] == "progress") cft_trainer_cancel(ranks[1].trainer);
    return event["event"] == "log" && event["level"] == "warning" ? 1 : 0;
  };
  EXPECT_THAT(train(ranks, small_groups(2)), testing::ElementsAre(CFT_CANCELLED, CFT_CANCELLED));
  EXPECT_THAT(ranks[0].listener.events,
              Contains(AllOf(HasSubstr("its part is lost"), HasSubstr("\"warning\""))));
}

TEST(Log, ToldByTheTrainerThatAStateIsOfAnotherCompression) {
  const auto with = [](const char* compression) {
    return std::string("mode: 'allreduce' compression: '") + compression + "'";
  };
  std::vector<Rank> first = two_ranks(with("powersgd"));
  ASSERT_THAT(train(first, small_groups(2)), testing::Each(0)) << cft_last_error();
  const std::string model = handed_bytes(cft_trainer_model, first[0].trainer);
  const std::string state = handed_bytes(cft_trainer_state, first[0].trainer);
  std::vector<Rank> second = two_ranks(with("topk"));
  for (Rank& rank : second) {
    ASSERT_EQ(
        cft_trainer_restore(rank.trainer, model.data(), model.size(), state.data(), state.size()),
        0)
        << cft_last_error();
  }
  ASSERT_THAT(train(second, small_groups(2)), testing::Each(0)) << cft_last_error();
  EXPECT_THAT(second[0].listener.events, Contains(HasSubstr("the state is of")));
}

/// Says something else than a rank would at both ports.
void knock(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    const Result<SocketAddress> to = parse_address(address);
    ASSERT_TRUE(to.ok());
    const Fd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(connect(fd.get(), to->get(), to->length), 0);
    ASSERT_EQ(send(fd.get(), "GET / HTTP/1.0\r\n\r\n", 18, MSG_NOSIGNAL), 18);
  }
}

TEST(Log, ToldByTheGroupThatAConnectionWasRefused) {
  std::vector<Rank> ranks = two_ranks("mode: 'allreduce'");
  const std::vector<cft_group*> groups = small_groups(2, knock);
  ASSERT_EQ(cft_group_log(groups[1], &Listener::hear, &ranks[1].listener), 0);
  ASSERT_THAT(train(ranks, groups), testing::Each(0)) << cft_last_error();
  const auto refused = HasSubstr("dropped a connection");
  // Who is connected first depends on the ranks' threads: rank 0 hears of it in any case.
  EXPECT_THAT(ranks[0].listener.events, Contains(refused));
}

TEST(Log, ToldByReplicasAndRounds) {
  const std::string more = R"(
    layer { name: "more" type: "InnerProduct" bottom: "data" top: "more"
            inner_product_param { num_output: 1 } }
    layer { name: "unread" type: "Silence" bottom: "more" })";
  nlohmann::json options{
      {"solver", kSmallSolver}, {"net", kSmallNet + more}, {"sync", "mode: 'average'"}};
  Listener listener;
  cft_replica* replica = nullptr;
  ASSERT_EQ(cft_replica_create(options.dump().c_str(), &replica), 0) << cft_last_error();
  ASSERT_EQ(cft_replica_log(replica, &Listener::hear, &listener), 0);
  EXPECT_THAT(listener.log, Contains(HasSubstr("Shard 0 of 1")));
  cft_replica_destroy(replica);

  cft_rounds* rounds = nullptr;
  ASSERT_EQ(cft_rounds_create(options.dump().c_str(), &rounds), 0) << cft_last_error();
  ASSERT_EQ(cft_rounds_log(rounds, &Listener::hear, &listener), 0);
  const std::string model = handed_bytes(cft_rounds_model, rounds);
  options["net"] = kSmallNet;
  cft_rounds* second = nullptr;
  ASSERT_EQ(cft_rounds_create(options.dump().c_str(), &second), 0) << cft_last_error();
  ASSERT_EQ(cft_rounds_log(second, &Listener::hear, &listener), 0);
  ASSERT_EQ(cft_rounds_restore(second, model.data(), model.size(), nullptr, 0), 0)
      << cft_last_error();
  EXPECT_THAT(listener.log, Contains(HasSubstr("Ignoring source layer more")));
  cft_rounds_destroy(rounds);
  cft_rounds_destroy(second);
}

}  // namespace
}  // namespace cafetiere
