// SPDX-License-Identifier: Apache-2.0
// Who may join a group, and what everybody else is told.
#include "core/comm/handshake.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <mutex>

#include "core/comm/collectives.h"
#include "core/comm/socket.h"
#include "middleman.h"
#include "ranks.h"

namespace cafetiere::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

/// Moves what `from` has sent on to `to`, with byte `flip` of the stream changed.
void relay(int from, int to, size_t flip, size_t* position) {
  uint8_t bytes[4096];
  const ssize_t n = recv(from, bytes, sizeof bytes, MSG_DONTWAIT);
  if (n <= 0) return;
  if (flip >= *position && flip < *position + n) bytes[flip - *position] ^= 0x40;
  *position += n;
  ASSERT_EQ(send(to, bytes, n, MSG_NOSIGNAL), n);
}

struct Outcome {
  Handshake::State initiator, acceptor;
  size_t there, back;  // bytes that went each way
};

/// A handshake through a wire that changes one byte of one direction; npos changes none.
Outcome shake(const Identity& caller, const Identity& called, size_t flip_there, size_t flip_back) {
  int a[2], b[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, a), 0);
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, b), 0);
  const Fd initiator_end(a[0]), wire_a(a[1]), wire_b(b[0]), acceptor_end(b[1]);
  Handshake initiator = Handshake::initiate(caller, 0, Channel::kData);
  Handshake acceptor = Handshake::accept(called);
  size_t there = 0, back = 0;
  Outcome outcome{};
  for (int round = 0; round < 10; ++round) {
    outcome.initiator = initiator.step(a[0]);
    relay(a[1], b[0], flip_there, &there);
    outcome.acceptor = acceptor.step(b[1]);
    relay(b[0], a[1], flip_back, &back);
  }
  outcome.there = there;
  outcome.back = back;
  return outcome;
}

Identity identity(int rank, bool encrypt = false) { return {rank, 2, "run/1", "secret", encrypt}; }

TEST(Handshake, AcceptsItsOwnAndNothingWithOneBitChanged) {
  const size_t none = std::string::npos;
  const Outcome good = shake(identity(1), identity(0), none, none);
  EXPECT_EQ(good.initiator, Handshake::State::kDone);
  EXPECT_EQ(good.acceptor, Handshake::State::kDone);
  for (size_t at = 0; at < sizeof(wire::Hello) + 32; ++at) {
    const Outcome bad = shake(identity(1), identity(0), at, none);
    EXPECT_NE(bad.acceptor, Handshake::State::kDone) << "byte " << at << " to the acceptor";
    EXPECT_NE(bad.initiator, Handshake::State::kDone);
  }
  for (size_t at = 0; at < sizeof(wire::Reply) + sizeof(wire::Verdict); ++at) {
    const Outcome bad = shake(identity(1), identity(0), none, at);
    EXPECT_NE(bad.initiator, Handshake::State::kDone) << "byte " << at << " to the initiator";
  }
}

TEST(Handshake, EndsInTlsOfWhichNothingCanBeChanged) {
  const size_t none = std::string::npos;
  const Outcome good = shake(identity(1, true), identity(0, true), none, none);
  EXPECT_EQ(good.initiator, Handshake::State::kDone);
  EXPECT_EQ(good.acceptor, Handshake::State::kDone);
  // The version of the first record is of no meaning, and not looked at (RFC 8446, 5.1).
  constexpr size_t kVersionAt = 2;
  const size_t tls_there = sizeof(wire::Hello) + 32;
  const size_t tls_back = sizeof(wire::Reply) + sizeof(wire::Verdict);
  for (size_t at = tls_there; at < good.there; ++at) {
    if (at == tls_there + kVersionAt) continue;
    const Outcome bad = shake(identity(1, true), identity(0, true), at, none);
    EXPECT_NE(bad.acceptor, Handshake::State::kDone) << "byte " << at << " to the acceptor";
  }
  for (size_t at = tls_back; at < good.back; ++at) {
    if (at == tls_back + kVersionAt) continue;
    const Outcome bad = shake(identity(1, true), identity(0, true), none, at);
    EXPECT_NE(bad.initiator, Handshake::State::kDone) << "byte " << at << " to the initiator";
  }
}

TEST(Handshake, NeedsTheSameSecretOnBothSides) {
  Identity other = identity(1);
  other.secret = "guess";
  const Outcome outcome = shake(other, identity(0), std::string::npos, std::string::npos);
  EXPECT_EQ(outcome.initiator, Handshake::State::kFailed);
  EXPECT_EQ(outcome.acceptor, Handshake::State::kFailed);
}

/// All that an acceptor sends to one who does not know the secret.
std::string told_to_stranger(const Identity& acceptor) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const Fd ours(ends[0]), theirs(ends[1]);
  Identity guess = identity(1);
  guess.secret = "guess";
  Handshake stranger = Handshake::initiate(guess, 0, Channel::kData);
  Handshake asked = Handshake::accept(acceptor);
  std::string heard(1024, '\0');
  const auto peek = [&] {
    return std::max<ssize_t>(0, recv(ends[0], heard.data(), heard.size(), MSG_PEEK | MSG_DONTWAIT));
  };
  std::string all;
  for (int round = 0; round < 10; ++round) {
    asked.step(ends[1]);
    all.append(heard, 0, size_t(peek()));
    stranger.step(ends[0]);
  }
  EXPECT_EQ(asked.step(ends[1]), Handshake::State::kFailed);
  return all;
}

TEST(Handshake, TellsAStrangerNothing) {
  const Identity members[] = {{0, 2, "job 7 of the bank", "secret", false},
                              {1, 9, "run/1", "secret", true}};
  for (const Identity& member : members) {
    const std::string told = told_to_stranger(member);
    EXPECT_EQ(told.size(), sizeof(wire::Reply) + sizeof(wire::Verdict));
    EXPECT_EQ(told.find(member.generation), std::string::npos);
    // All that is not zero: a nonce, and in each message what every rank of this release says.
    const std::string rest = told.substr(sizeof(wire::Reply) + sizeof(uint32_t));
    EXPECT_EQ(rest, std::string(rest.size(), '\0'));
  }
}

TEST(TcpGroupDeathTest, RefusesMoreRanksThanItMayOpenFiles) {
  const auto poor = [] {
    const rlimit limit{64, 64};
    setrlimit(RLIMIT_NOFILE, &limit);
    const Status refused = TcpGroup::listen(tcp_options(0, 1000)).status();
    std::fputs(refused.message().c_str(), stderr);
    _exit(TcpGroup::listen(tcp_options(0, 8)).ok() ? 0 : 1);
  };
  EXPECT_EXIT(poor(), testing::ExitedWithCode(0),
              "1000 ranks need 1998 connections on each rank; this process may open 64 files.*"
              "ulimit -n");
}

TEST(TcpGroup, RefusesASecretThatCouldBeGuessed) {
  GroupOptions options = tcp_options(0, 1);
  options.secret = "fifteen bytes..";
  EXPECT_THAT(TcpGroup::listen(options).status().message(),
              HasSubstr("15 bytes and could be guessed: give all ranks the same 16 random bytes"));
}

class JoinTest : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(Transports, JoinTest,
                         testing::Values(Transport::kTcp, Transport::kEncrypted), transport_name);

/// Rank 0 and a rank 1 that `adapt` has changed try to meet; returns what rank 1 is told and, in
/// `log`, what rank 0 wrote meanwhile.
Status meet_changed(Transport transport, const std::function<void(GroupOptions*)>& adapt,
                    std::string* log) {
  std::mutex mutex;
  GroupOptions options = options_of(transport, 0, 2);
  options.log = Logger([&](LogLevel, std::string_view text) {
    std::lock_guard lock(mutex);
    log->append(text).append("\n");
  });
  auto first = TcpGroup::listen(options);
  options = options_of(transport, 1, 2);
  adapt(&options);
  auto second = TcpGroup::listen(options);
  const std::vector<std::string> addresses = {(*first)->address(), (*second)->address()};
  std::thread waiting([&] { EXPECT_FALSE((*first)->connect(addresses).ok()); });
  const auto start = std::chrono::steady_clock::now();
  const Status told = (*second)->connect(addresses);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  while (true) {  // rank 0 goes on waiting; it has to learn of the refusal, then it is stopped
    std::this_thread::yield();
    std::lock_guard lock(mutex);
    if (!log->empty()) break;
  }
  (*first)->cancel();
  waiting.join();
  return told;
}

TEST_P(JoinTest, RefusesAnotherSecret) {
  std::string log;
  const Status told = meet_changed(
      GetParam(), [](GroupOptions* o) { o->secret = "another of the test"; }, &log);
  EXPECT_EQ(told.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(told.message(), HasSubstr("a different secret"));
  EXPECT_THAT(told.message(), HasSubstr("rank 0"));
  EXPECT_THAT(log, HasSubstr("a different secret"));
}

TEST_P(JoinTest, RefusesARankThatAloneEncryptsOrDoesNot) {
  std::string log;
  const Status told = meet_changed(
      GetParam(), [](GroupOptions* o) { o->encrypt = !o->encrypt; }, &log);
  const std::string with = "encrypts its connections, this rank does not encrypt them";
  const std::string without = "does not encrypt its connections, this rank encrypts them";
  const bool rank0_encrypts = GetParam() == Transport::kEncrypted;
  EXPECT_EQ(told.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(told.message(), HasSubstr("rank 0"));
  EXPECT_THAT(told.message(), HasSubstr(rank0_encrypts ? with : without));
  EXPECT_THAT(told.message(), HasSubstr("give all ranks the same `encrypt`"));
  EXPECT_THAT(log, HasSubstr(rank0_encrypts ? without : with));
}

TEST_P(JoinTest, RefusesAnotherGeneration) {
  std::string log;
  const Status told = meet_changed(
      GetParam(), [](GroupOptions* o) { o->generation = "test/0"; }, &log);
  EXPECT_EQ(told.code(), ErrorCode::kInvalidArgument);
  EXPECT_THAT(told.message(), HasSubstr("'test/1', this rank to 'test/0'"));
  EXPECT_THAT(log, HasSubstr("'test/0', this rank to 'test/1'"));
}

/// A client that is no rank: sends `bytes` and keeps the connection open.
Fd stranger(const std::string& address, std::string_view bytes) {
  Fd fd = std::move(*start_connect(*parse_address(address)));
  const int flags = MSG_NOSIGNAL;
  while (send(fd.get(), bytes.data(), bytes.size(), flags) < 0 && errno != EPIPE) {
  }
  return fd;
}

TEST_P(JoinTest, StrangersNeitherStopNorStallIt) {
  const int size = 3;
  std::vector<std::unique_ptr<TcpGroup>> groups;
  std::vector<std::string> addresses;
  for (int r = 0; r < size; ++r) {
    groups.push_back(std::move(*TcpGroup::listen(options_of(GetParam(), r, size))));
    addresses.push_back(groups.back()->address());
  }
  std::vector<Fd> strangers;
  for (const std::string& address : addresses) {
    for (int i = 0; i < 20; ++i) stranger(address, "x");  // a port scan
    strangers.push_back(stranger(address, ""));           // half open
    strangers.push_back(stranger(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    strangers.push_back(stranger(address, std::string_view("CAFTGRP\0\1\0\0\0", 12)));
    strangers.push_back(stranger(address, std::string(100'000, '\xff')));
  }
  expect_ok(on_ranks(size, [&](int r) -> Status {
    CFT_TRY(groups[r]->connect(addresses));
    return barrier(groups[r].get());
  }));
}

TEST(TcpGroup, NamesTheRankThatDoesNotCome) {
  GroupOptions options = tcp_options(0, 2);
  options.connect_timeout_ms = 200;
  auto group = TcpGroup::listen(options);
  const Status status = (*group)->connect({(*group)->address(), "127.0.0.1:1"});
  EXPECT_EQ(status.code(), ErrorCode::kTimeout);
  EXPECT_THAT(status.message(), HasSubstr("rank 1 at 127.0.0.1:1"));
}

// As one on a machine with too much to do.
TEST(TcpGroup, WaitsForASlowHandshakeAsLongAsForTheGroup) {
  std::vector<std::unique_ptr<TcpGroup>> groups;
  for (int r = 0; r < 2; ++r) groups.push_back(std::move(*TcpGroup::listen(tcp_options(r, 2))));
  const Middleman slow(groups[0]->address(), std::chrono::milliseconds(2500));
  const std::vector<std::string> addresses{slow.address(), groups[1]->address()};
  expect_ok(on_ranks(2, [&](int r) -> Status {
    CFT_TRY(groups[size_t(r)]->connect(addresses));
    return barrier(groups[size_t(r)].get());
  }));
}

TEST(TcpGroup, NamesTheRankWhosePortIsClosed) {
  auto group = TcpGroup::listen(tcp_options(1, 2));
  std::string gone;
  {
    auto other = TcpGroup::listen(tcp_options(0, 2));
    gone = (*other)->address();
  }
  const Status status = (*group)->connect({gone, (*group)->address()});
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("rank 0 at " + gone));
  EXPECT_THAT(status.message(), HasSubstr("refused"));
}

// Rank 0 is connected to both, and hears from neither before they have found each other.
TEST(TcpGroup, NamesTheRanksBetweenWhichThereIsNoPath) {
  const Result<Fd> wall = listen_on("127.0.0.1");  // takes connections, and never answers
  std::vector<std::unique_ptr<TcpGroup>> groups;
  std::vector<std::string> addresses;
  for (int r = 0; r < 3; ++r) {
    GroupOptions options = tcp_options(r, 3);
    options.timeout_ms = 300;
    options.connect_timeout_ms = 1500;
    groups.push_back(std::move(*TcpGroup::listen(options)));
    addresses.push_back(groups.back()->address());
  }
  const auto statuses = on_ranks(3, [&](int r) -> Status {
    std::vector<std::string> known = addresses;
    if (r == 2) known[1] = local_address(wall->get()).text();
    CFT_TRY(groups[size_t(r)]->connect(known));
    return barrier(groups[size_t(r)].get());
  });
  // Whichever of the two gives up first names the path, and all hear it.
  for (const Status& status : statuses) {
    EXPECT_THAT(status.message(), AnyOf(HasSubstr("rank 2 waited 1500 ms for rank 1"),
                                        HasSubstr("rank 1 waited 1500 ms for rank 2")));
  }
  EXPECT_THAT(statuses[0].message(), Not(HasSubstr("silent")));
}

TEST(TcpGroup, CancelEndsConnect) {
  auto group = TcpGroup::listen(tcp_options(0, 2));
  std::thread canceller([&] { (*group)->cancel(); });
  const Status status = (*group)->connect({(*group)->address(), "127.0.0.1:1"});
  canceller.join();
  EXPECT_EQ(status.code(), ErrorCode::kCancelled);
}

TEST(TcpGroup, RefusesBadOptionsWithAdvice) {
  const auto refusal = [](const std::function<void(GroupOptions*)>& adapt) {
    GroupOptions options = tcp_options(0, 2);
    adapt(&options);
    return TcpGroup::listen(options).status();
  };
  EXPECT_THAT(refusal([](auto* o) { o->secret = ""; }).message(), HasSubstr("secret has 0 bytes"));
  EXPECT_THAT(refusal([](auto* o) { o->bind = "0.0.0.0"; }).message(),
              HasSubstr("means every interface"));
  EXPECT_THAT(refusal([](auto* o) { o->bind = "192.0.2.1"; }).message(),
              HasSubstr("address of this machine"));
  EXPECT_THAT(refusal([](auto* o) { o->rank = 2; }).message(), HasSubstr("rank 2 of 2"));
  EXPECT_FALSE(refusal([](auto* o) { o->generation.assign(200, 'g'); }).ok());
  auto group = TcpGroup::listen(tcp_options(0, 2));
  EXPECT_EQ((*group)->connect({"127.0.0.1:1"}).code(), ErrorCode::kInvalidArgument);
  auto second = TcpGroup::listen(tcp_options(1, 2));
  EXPECT_THAT((*second)->connect({"nonsense", "127.0.0.1:1"}).message(), HasSubstr("host:port"));
}

/// An outage that is shorter than the time-out ends no idle connection of a peer that computes.
TEST(Socket, KeepaliveWaitsForTheTimeOut) {
  for (const auto& [timeout_ms, most_s] : {std::pair(100, 4), {6000, 10}, {60000, 70}}) {
    const Fd fd(socket(AF_INET, SOCK_STREAM, 0));
    tune_data(fd.get(), timeout_ms);
    const auto option = [&](int name) {
      int value = -1;
      socklen_t size = sizeof value;
      EXPECT_EQ(getsockopt(fd.get(), IPPROTO_TCP, name, &value, &size), 0);
      return value;
    };
    const int seconds = option(TCP_KEEPIDLE) + option(TCP_KEEPINTVL) * option(TCP_KEEPCNT);
    EXPECT_GE(seconds * 1000, timeout_ms);
    EXPECT_LE(seconds, most_s);
    EXPECT_EQ(option(TCP_USER_TIMEOUT), 0);
  }
}

TEST(TcpGroup, OneRankNeedsNobody) {
  auto group = TcpGroup::listen(tcp_options(0, 1));
  ASSERT_TRUE((*group)->connect({(*group)->address()}).ok());
  EXPECT_TRUE((*group)->exchange({}, {}).ok());
}

}  // namespace
}  // namespace cafetiere::test
