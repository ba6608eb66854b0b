// SPDX-License-Identifier: Apache-2.0
// What somebody between the ranks can read and change.
#include <gmock/gmock.h>

#include <algorithm>
#include <numeric>

#include "core/comm/collectives.h"
#include "core/comm/messenger.h"
#include "core/comm/stream.h"
#include "middleman.h"
#include "ranks.h"

namespace cafetiere::test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

const std::string kKnown = "numbers that nobody else may read";

/// Two ranks with a man between them.
struct Watched {
  std::vector<std::unique_ptr<Group>> groups;
  std::unique_ptr<Middleman> middleman;
};

Watched make_watched(Transport transport, int timeout_ms = 30000) {
  std::vector<std::unique_ptr<TcpGroup>> groups;
  for (int rank = 0; rank < 2; ++rank) {
    GroupOptions options = options_of(transport, rank, 2);
    options.timeout_ms = timeout_ms;
    groups.push_back(std::move(*TcpGroup::listen(options)));
  }
  Watched watched;
  watched.middleman = std::make_unique<Middleman>(groups[0]->address());
  const std::vector<std::string> addresses{watched.middleman->address(), groups[1]->address()};
  expect_ok(on_ranks(2, [&](int rank) { return groups[size_t(rank)]->connect(addresses); }));
  for (auto& group : groups) watched.groups.push_back(std::move(group));
  return watched;
}

/// Gives the peer many copies of what the other side looks for.
Status exchange_known(Group& group) {
  std::string mine;
  while (mine.size() < 1'000'000) mine += kKnown;
  std::string all(2 * mine.size(), ' ');
  CFT_TRY(
      all_gather(&group, std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all))));
  return all == mine + mine ? Status() : internal_error("wrong bytes");
}

class WatchedTest : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(Transports, WatchedTest,
                         testing::Values(Transport::kTcp, Transport::kEncrypted), transport_name);

TEST_P(WatchedTest, OnlyPlainBytesCanBeRead) {
  const bool plain = GetParam() == Transport::kTcp;
  Watched watched = make_watched(GetParam());
  expect_ok(on_ranks(2, [&](int rank) { return exchange_known(*watched.groups[size_t(rank)]); }));
  EXPECT_EQ(watched.middleman->has_seen(kKnown), plain);
  // The reason of a goodbye travels by the control connection.
  const std::string reason = "rank 1 was cancelled";
  watched.groups[1]->cancel();
  EXPECT_THAT(barrier(watched.groups[0].get()).message(), HasSubstr("rank 1"));
  while (plain && !watched.middleman->has_seen(reason)) std::this_thread::yield();
  EXPECT_EQ(watched.middleman->has_seen(reason), plain);
  EXPECT_FALSE(watched.middleman->has_seen(tcp_options(0, 2).secret));
}

/// Both ranks work until they fail; what they say.
std::vector<Status> fail(Watched* watched, const std::function<Status(Group&)>& work) {
  return on_ranks(2, [&](int rank) {
    Status status;
    while (status.ok()) status = work(*watched->groups[size_t(rank)]);
    return status;
  });
}

void expect_change_is_told(const std::vector<Status>& told) {
  for (int rank : {0, 1}) {
    EXPECT_EQ(told[size_t(rank)].code(), ErrorCode::kUnavailable);
    EXPECT_THAT(told[size_t(rank)].message(), HasSubstr("rank " + std::to_string(1 - rank)));
  }
  EXPECT_THAT(told[0].message() + told[1].message(), HasSubstr("bytes were changed in transit"));
}

TEST(Encryption, AChangedBitOfTheDataEndsTheGroup) {
  Watched watched = make_watched(Transport::kEncrypted);
  watched.middleman->spoil(4000);
  expect_change_is_told(fail(&watched, exchange_known));
  EXPECT_TRUE(watched.middleman->has_spoilt());
}

TEST(Encryption, AChangedBitOfAHeartbeatEndsTheGroup) {
  Watched watched = make_watched(Transport::kEncrypted, /*timeout_ms=*/6000);
  watched.middleman->spoil(1);
  expect_change_is_told(fail(&watched, [](Group& group) {
    char byte;
    const Receive never{1 - group.rank(), &byte, 1};
    return group.exchange({}, {&never, 1});
  }));
}

/// The two ends of a connection between ranks, with keys that may differ.
class Pair {
 public:
  Pair(const TlsSession::Key& client, const TlsSession::Key& server, uint64_t records_per_key) {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    for (int side : {0, 1}) fds_[side] = Fd(ends[side]);
    sessions_[0] =
        std::move(*TlsSession::create(TlsSession::Role::kClient, client, records_per_key));
    sessions_[1] =
        std::move(*TlsSession::create(TlsSession::Role::kServer, server, records_per_key));
  }

  /// The status of each side when both are done or one has failed.
  std::vector<Status> shake() {
    std::vector<Result<bool>> results(2, false);
    while (!(*results[0] && *results[1])) {
      for (int side : {0, 1}) {
        results[size_t(side)] = sessions_[side]->handshake(fds_[side].get());
        if (!results[size_t(side)].ok()) return {results[0].status(), results[1].status()};
      }
    }
    return {Status(), Status()};
  }

  Stream stream(int side) { return Stream(std::move(fds_[side]), std::move(sessions_[side])); }

 private:
  Fd fds_[2];
  std::unique_ptr<TlsSession> sessions_[2];
};

TEST(TlsSession, MovesBytesBothWaysWhileTheKeysChange) {
  const TlsSession::Key key{1, 2, 3};
  Pair pair(key, key, /*records_per_key=*/3);
  expect_ok(pair.shake());
  std::vector<std::byte> sent(3'000'001), came[2];
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = std::byte(i * i >> 3);
  Stream streams[2] = {pair.stream(0), pair.stream(1)};
  size_t gone[2] = {0, 0}, got[2] = {0, 0};
  for (auto& room : came) room.resize(sent.size());
  while (got[0] < sent.size() || got[1] < sent.size()) {
    for (int side : {0, 1}) {
      const auto rest = std::span<const std::byte>(sent).subspan(gone[side]);
      const ssize_t out = rest.empty() ? 0 : streams[side].send(rest);
      ASSERT_TRUE(out >= 0 || would_block());
      gone[side] += size_t(std::max<ssize_t>(0, out));
      const ssize_t in = streams[side].receive(std::span(came[side]).subspan(got[side]));
      ASSERT_TRUE(in >= 0 || would_block());
      got[side] += size_t(std::max<ssize_t>(0, in));
    }
  }
  EXPECT_EQ(came[0], sent);
  EXPECT_EQ(came[1], sent);
}

TEST(TlsSession, RefusesAnotherKey) {
  Pair pair({1}, {2}, TlsSession::kRecordsPerKey);
  const std::vector<Status> told = pair.shake();
  EXPECT_FALSE(told[0].ok() && told[1].ok());
  EXPECT_THAT(told[0].message() + told[1].message(), HasSubstr("does not agree on the encryption"));
}

TEST(TlsSession, RefusesWhatIsNoTls) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  const Fd ours(ends[0]), theirs(ends[1]);
  auto session = TlsSession::create(TlsSession::Role::kServer, {1});
  const std::string plain = kKnown;
  ASSERT_EQ(send(theirs.get(), plain.data(), plain.size(), 0), ssize_t(plain.size()));
  EXPECT_FALSE((*session)->handshake(ours.get()).ok());
}

}  // namespace
}  // namespace cafetiere::test
