// SPDX-License-Identifier: Apache-2.0
// The Messenger between ranks that live, leave, die and hang. The bounds on time are wide, as in the
// tests of the group.
#include "core/comm/messenger.h"

#include <gmock/gmock.h>
#include <poll.h>

#include <algorithm>
#include <barrier>
#include <condition_variable>
#include <map>
#include <mutex>
#include <new>

#include "children.h"
#include "core/comm/collectives.h"

namespace cafetiere::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;
using Bytes = Messenger::Bytes;

constexpr size_t kMessengerMaxRequest = 8 << 20;
enum Topic : uint32_t { kEcho, kSizeOf, kFail, kThrow };

/// Answers as the topic says and takes note of who is lost.
class Party {
 public:
  Status open(Group* group) {
    auto opened =
        Messenger::open(group, kMessengerMaxRequest,
                        {.answer = [this](int peer, uint32_t topic, uint32_t index,
                                          Bytes data) { return answer(peer, topic, index, data); },
                         .lost = [this](int peer, const Status& why) { note_loss(peer, why); }});
    if (!opened.ok()) return opened.status();
    messenger_ = std::move(*opened);
    return {};
  }

  Messenger& messenger() { return *messenger_; }
  void leave() { messenger_.reset(); }
  std::string wait_for_loss(int peer) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lost_.contains(peer); });
    return lost_[peer];
  }

  /// One request that is echoed, with `index` added to each byte.
  Status echo(int peer, uint32_t index, size_t bytes) {
    const Bytes data(bytes, std::byte{7});
    Bytes reply(bytes);
    Messenger::Request request{peer, kEcho, index, data, reply};
    CFT_TRY(messenger_->ask({&request, 1}));
    CFT_TRY(request.status);
    const bool right =
        std::ranges::all_of(reply, [&](std::byte b) { return int(b) == 7 + int(index); });
    return right ? Status() : internal_error("a wrong reply");
  }

 private:
  static Result<Bytes> answer(int, uint32_t topic, uint32_t index, Bytes& data) {
    if (topic == kFail) return invalid_argument("no such topic");
    if (topic == kThrow) throw std::bad_alloc();
    if (topic == kSizeOf) return Bytes(index);
    for (std::byte& b : data) b = std::byte(int(b) + int(index));
    return std::move(data);
  }

  void note_loss(int peer, const Status& why) {
    std::lock_guard lock(mutex_);
    lost_[peer] = why.message();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::string> lost_;
  std::unique_ptr<Messenger> messenger_;  // last: its thread uses all of the above
};

class MessengerTest : public testing::TestWithParam<Transport> {
 protected:
  /// Opens a party on each rank, calls body(rank, party), and lets nobody leave before all are done.
  void with_parties(int size, const std::function<Status(int, Party&)>& body) {
    auto groups = make_groups(GetParam(), size);
    std::barrier done(size);
    expect_ok(on_ranks(size, [&](int rank) {
      Party party;
      Status status = party.open(groups[size_t(rank)].get());
      if (status.ok()) status = body(rank, party);
      done.arrive_and_wait();
      return status;
    }));
  }
};

TEST_P(MessengerTest, AllAskAllAtOnce) {
  constexpr int kSize = 3, kRounds = 20;
  with_parties(kSize, [](int rank, Party& party) -> Status {
    for (int round = 0; round < kRounds; ++round) {
      const size_t bytes = round % 4 == 0 ? 3'000'001 : size_t(round);
      const Bytes data(bytes, std::byte{3});
      std::vector<Bytes> replies(kSize, Bytes(bytes));
      std::vector<Messenger::Request> requests;
      for (int peer = 0; peer < kSize; ++peer) {
        const auto index = uint32_t(rank + 10 * peer);
        if (peer != rank) requests.push_back({peer, kEcho, index, data, replies[size_t(peer)]});
      }
      CFT_TRY(party.messenger().ask(requests));
      for (const auto& request : requests) {
        CFT_TRY(request.status);
        const auto expected = std::byte(3 + rank + 10 * request.peer);
        if (std::ranges::count(request.reply, expected) != ptrdiff_t(bytes)) {
          return internal_error("a wrong reply");
        }
      }
    }
    return {};
  });
}

TEST_P(MessengerTest, SeveralRequestsToOnePeerAreAnsweredInOrder) {
  with_parties(2, [](int rank, Party& party) -> Status {
    const Bytes data(1000, std::byte{1});
    std::vector<Bytes> replies(50, Bytes(1000));
    std::vector<Messenger::Request> requests;
    for (uint32_t i = 0; i < replies.size(); ++i) {
      requests.push_back({1 - rank, kEcho, i, data, replies[i]});
    }
    CFT_TRY(party.messenger().ask(requests));
    for (size_t i = 0; i < replies.size(); ++i) EXPECT_EQ(int(replies[i].back()), int(i) + 1);
    return {};
  });
}

TEST_P(MessengerTest, WhatItsThreadThrowsEndsItForBothSides) {
  with_parties(2, [](int rank, Party& party) -> Status {
    Bytes reply(1);
    Messenger::Request request{1 - rank, rank == 0 ? kThrow : kEcho, 0, reply, reply};
    if (rank == 0) {
      CFT_TRY(party.messenger().ask({&request, 1}));
      EXPECT_EQ(request.status.code(), ErrorCode::kUnavailable) << request.status.message();
      return {};
    }
    EXPECT_THAT(party.wait_for_loss(0), HasSubstr("memory"));  // it must not be waited for
    EXPECT_EQ(party.messenger().ask({&request, 1}).code(), ErrorCode::kOutOfMemory);
    EXPECT_FALSE(party.messenger().alive(0));
    return {};
  });
}

/// A rank that speaks the protocol by hand.
TEST(Messenger, AReplyBeforeTheWholeRequestIsNone) {
  auto groups = make_groups(Transport::kTcp, 2);
  expect_ok(on_ranks(2, [&](int rank) -> Status {
    if (rank == 0) {
      Party party;
      CFT_TRY(party.open(groups[0].get()));
      const Bytes large(64 << 20);  // more than the sockets hold
      Bytes reply(4);
      Messenger::Request request{1, kEcho, 0, large, reply};
      CFT_TRY(party.messenger().ask({&request, 1}));
      EXPECT_THAT(request.status.message(), HasSubstr("sends 4 bytes where 0 are expected"));
      return {};
    }
    CFT_ASSIGN(PeerLinks links, groups[1]->open_links());
    Stream& stream = links.streams[0];
    // The request is under way once its header is here. On a busy machine heartbeats come first.
    constexpr size_t kHeader = 24, kBytes = 28;
    struct {
      uint32_t magic = 0x4d544643, kind = 2, topic = 0, index = 0;
      uint64_t bytes = 4;
      uint32_t body = 7, none = 0;
    } early, header;
    const auto room = std::as_writable_bytes(std::span(&header, 1)).first(kHeader);
    constexpr uint32_t kRequest = 1;
    do {
      for (size_t have = 0; have < kHeader;) {
        pollfd more{stream.fd(), POLLIN, 0};
        poll(&more, 1, -1);
        const ssize_t n = stream.receive(room.subspan(have));
        if (n <= 0 && !would_block()) return unavailable("the request does not come");
        have += size_t(std::max<ssize_t>(n, 0));
      }
    } while (header.kind != kRequest);
    const auto message = std::as_bytes(std::span(&early, 1)).first(kBytes);
    EXPECT_EQ(stream.send(message), ssize_t(kBytes));
    pollfd end{stream.fd(), POLLRDHUP, 0};  // reads nothing: the request stays on its way
    poll(&end, 1, -1);
    return {};
  }));
}

TEST_P(MessengerTest, ARankThatComputesAnswers) {
  std::barrier answered(2);
  with_parties(2, [&](int rank, Party& party) -> Status {
    const Status status = rank == 0 ? party.echo(1, 5, 100'000) : Status();
    answered.arrive_and_wait();  // rank 1 does nothing until then
    return status;
  });
}

TEST_P(MessengerTest, ARankThatLeavesIsALossForThoseWhoAskIt) {
  with_parties(3, [](int rank, Party& party) -> Status {
    if (rank == 2) {
      party.leave();
      return {};
    }
    EXPECT_THAT(party.wait_for_loss(2), HasSubstr("rank 2 has left"));
    EXPECT_FALSE(party.messenger().alive(2));
    const Status status = party.echo(2, 1, 10);
    EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
    EXPECT_THAT(status.message(), HasSubstr("rank 2"));
    return party.echo(1 - rank, 1, 10);
  });
}

TEST_P(MessengerTest, AnErrorOfTheAnswerLosesTheOneWhoAsked) {
  with_parties(2, [](int rank, Party& party) -> Status {
    if (rank == 1) {
      EXPECT_THAT(party.wait_for_loss(0), HasSubstr("no such topic"));
      return {};
    }
    Messenger::Request request{1, kFail, 0, {}, {}};
    CFT_TRY(party.messenger().ask({&request, 1}));
    EXPECT_EQ(request.status.code(), ErrorCode::kUnavailable);
    return {};
  });
}

TEST_P(MessengerTest, ARequestThatIsTooLargeLosesTheOneWhoAsks) {
  with_parties(2, [](int rank, Party& party) -> Status {
    if (rank == 1) {
      EXPECT_THAT(party.wait_for_loss(0), HasSubstr("rank 0 sent a request of"));
      return {};
    }
    EXPECT_EQ(party.echo(1, 1, kMessengerMaxRequest + 1).code(), ErrorCode::kUnavailable);
    return {};
  });
}

TEST_P(MessengerTest, AReplyOfAnotherSizeIsAnError) {
  with_parties(2, [](int rank, Party& party) -> Status {
    if (rank == 1) return {};
    Bytes reply(10);
    Messenger::Request request{1, kSizeOf, 11, {}, reply};
    CFT_TRY(party.messenger().ask({&request, 1}));
    EXPECT_EQ(request.status.code(), ErrorCode::kInternal);
    EXPECT_THAT(request.status.message(), HasSubstr("sends 11 bytes where 10 are expected"));
    return {};
  });
}

TEST_P(MessengerTest, CancelEndsTheCallersOnly) {
  auto groups = make_groups(GetParam(), 3);
  std::barrier cancelled(3);
  std::barrier done(3);
  expect_ok(on_ranks(3, [&](int rank) -> Status {
    Party party;
    CFT_TRY(party.open(groups[size_t(rank)].get()));
    cancelled.arrive_and_wait();
    Status status;
    if (rank == 2) {
      groups[2]->cancel();
      EXPECT_THAT(party.wait_for_loss(0), HasSubstr("cancelled"));
      EXPECT_EQ(party.echo(0, 1, 10).code(), ErrorCode::kCancelled);
    } else {
      party.wait_for_loss(2);
      status = party.echo(1 - rank, 1, 10);
    }
    done.arrive_and_wait();
    return status;
  }));
}

INSTANTIATE_TEST_SUITE_P(Transports, MessengerTest,
                         testing::Values(Transport::kLocal, Transport::kTcp, Transport::kEncrypted),
                         transport_name);

/// Asks rank 0, at least once, until something fails.
Status ask_forever(Group& group) {
  Party party;
  CFT_TRY(party.open(&group));
  while (true) CFT_TRY(party.echo(0, 1, 3'000'000));
}

/// Asks rank 0 until it leaves.
Status ask_to_the_end(Group& group) {
  Party party;
  CFT_TRY(party.open(&group));
  Status status;
  while (status.ok()) status = party.echo(0, 1, 100'000);
  return status.code() == ErrorCode::kUnavailable ? party.messenger().status() : status;
}

class MessengerFault : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(Transports, MessengerFault,
                         testing::Values(Transport::kTcp, Transport::kEncrypted), transport_name);

TEST_P(MessengerFault, TheLossOfARankEndsTheGroupButNotTheMessenger) {
  Children children(3, 60'000, ask_to_the_end, GetParam());
  Party party;
  ASSERT_TRUE(party.open(&children.group()).ok());
  for (int peer : {1, 2}) ASSERT_TRUE(party.echo(peer, 1, 3'000'000).ok());
  children.signal(2, SIGKILL);
  EXPECT_THAT(party.wait_for_loss(2), HasSubstr("rank 2 is gone"));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(party.echo(1, 1, 3'000'000).ok());
  EXPECT_FALSE(barrier(&children.group()).ok());
  party.leave();
  EXPECT_THAT(children.report(1), StartsWith("0 "));
}

TEST_P(MessengerFault, AStoppedRankIsLostAndLearnsIt) {
  Children children(3, 2000, ask_forever, GetParam());
  Party party;
  ASSERT_TRUE(party.open(&children.group()).ok());
  for (int peer : {1, 2}) ASSERT_TRUE(party.echo(peer, 1, 1000).ok());
  children.signal(2, SIGSTOP);
  const Status status = [&] {
    Status last;
    while (last.ok()) last = party.echo(2, 1, 3'000'000);
    return last;
  }();
  EXPECT_EQ(status.code(), ErrorCode::kTimeout);
  EXPECT_THAT(status.message(), HasSubstr("rank 2 has been silent"));
  EXPECT_TRUE(party.echo(1, 1, 3'000'000).ok());
  children.signal(2, SIGCONT);
  EXPECT_THAT(children.report(2), HasSubstr("was stalled"));
}

}  // namespace
}  // namespace cafetiere::test
