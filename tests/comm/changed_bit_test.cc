// SPDX-License-Identifier: Apache-2.0
// A bit that is changed between two ranks that ask each other: both lose the other and go on.
#include <gmock/gmock.h>

#include <future>

#include "core/comm/messenger.h"
#include "middleman.h"
#include "ranks.h"

namespace cafetiere::test {
namespace {

using testing::HasSubstr;
using Bytes = Messenger::Bytes;

constexpr size_t kMaxRequest = 1 << 20;

/// One of two ranks, whose only connection is that for a messenger.
class Linked : public Group {
 public:
  Linked(int rank, Stream stream) : rank_(rank), stream_(std::move(stream)) {}

  int rank() const override { return rank_; }
  int size() const override { return 2; }
  Status exchange(std::span<const Send>, std::span<const Receive>) override {
    return internal_error("there is no connection for that");
  }
  Result<PeerLinks> open_links() override {
    PeerLinks links{.streams = {}, .cancelled = never_.get(), .timeout_ms = 30000};
    links.streams.resize(2);
    links.streams[size_t(1 - rank_)] = std::move(stream_);
    return links;
  }
  void cancel() override {}
  Counters counters() const override { return {}; }

 private:
  const int rank_;
  Stream stream_;
  const Fd never_{eventfd(0, EFD_CLOEXEC)};
};

/// Rank 0 asks and rank 1 answers, with a man between them.
class ChangedBit : public testing::TestWithParam<Transport> {
 protected:
  void SetUp() override {
    const Fd listener = std::move(*listen_on("127.0.0.1"));
    middleman_ = std::make_unique<Middleman>(local_address(listener.get()).text());
    Fd ends[2] = {std::move(*start_connect(*parse_address(middleman_->address()))), Fd()};
    pollfd knock{listener.get(), POLLIN, 0};
    poll(&knock, 1, -1);
    ends[1] = Fd(accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK));
    std::unique_ptr<TlsSession> tls[2];
    if (GetParam() == Transport::kEncrypted) agree(ends, tls);
    for (int rank : {0, 1}) {
      groups_[rank] =
          std::make_unique<Linked>(rank, Stream(std::move(ends[rank]), std::move(tls[rank])));
      messengers_[rank] = std::move(*Messenger::open(
          groups_[rank].get(), kMaxRequest,
          {.answer = [](int, uint32_t, uint32_t, Bytes data) -> Result<Bytes> { return data; },
           .lost = [this, rank](int, const Status& why) { lost_[rank].set_value(why); }}));
    }
  }

  void TearDown() override {
    for (auto& messenger : messengers_) messenger.reset();
  }

  Status ask(size_t bytes) {
    const Bytes data(bytes, std::byte{7});
    Bytes reply(bytes);
    Messenger::Request request{1, 0, 0, data, reply};
    CFT_TRY(messengers_[0]->ask({&request, 1}));
    CFT_TRY(request.status);
    return reply == data ? Status() : internal_error("a wrong reply");
  }

  /// Asks until that fails: what the two say of each other.
  std::string ask_until_lost(size_t bytes) {
    Status status;
    while (status.ok()) status = ask(bytes);
    EXPECT_TRUE(middleman_->has_spoilt());
    const Status told[2] = {lost_[0].get_future().get(), lost_[1].get_future().get()};
    EXPECT_EQ(status.message(), told[0].message());
    for (int rank : {0, 1}) {
      EXPECT_THAT(told[rank].message(), HasSubstr("rank " + std::to_string(1 - rank)));
      EXPECT_FALSE(messengers_[rank]->alive(1 - rank));
      EXPECT_TRUE(messengers_[rank]->status().ok());
    }
    return told[0].message() + told[1].message();
  }

  Middleman& middleman() { return *middleman_; }

 private:
  static void agree(Fd ends[2], std::unique_ptr<TlsSession> tls[2]) {
    tls[0] = std::move(*TlsSession::create(TlsSession::Role::kClient, {1}));
    tls[1] = std::move(*TlsSession::create(TlsSession::Role::kServer, {1}));
    bool done[2] = {false, false};
    while (!done[0] || !done[1]) {
      for (int side : {0, 1}) {
        if (!done[side]) done[side] = *tls[side]->handshake(ends[side].get());
      }
    }
  }

  std::unique_ptr<Middleman> middleman_;
  std::unique_ptr<Linked> groups_[2];
  std::promise<Status> lost_[2];
  std::unique_ptr<Messenger> messengers_[2];
};

INSTANTIATE_TEST_SUITE_P(Transports, ChangedBit,
                         testing::Values(Transport::kTcp, Transport::kEncrypted), transport_name);

TEST_P(ChangedBit, InFrontOfAMessageIsTold) {
  ASSERT_TRUE(ask(100).ok());
  middleman().spoil_first_byte();
  EXPECT_THAT(ask_until_lost(100),
              HasSubstr(GetParam() == Transport::kTcp ? "bytes that are not a message of this group"
                                                      : "bytes were changed in transit"));
}

/// Plain connections rely on TCP's own checksum for the numbers: there is no second one.
class ChangedNumbers : public ChangedBit {};
INSTANTIATE_TEST_SUITE_P(Transports, ChangedNumbers, testing::Values(Transport::kEncrypted),
                         transport_name);

TEST_P(ChangedNumbers, AreTold) {
  ASSERT_TRUE(ask(100'000).ok());
  middleman().spoil(4000);
  EXPECT_THAT(ask_until_lost(100'000), HasSubstr("bytes were changed in transit"));
}

}  // namespace
}  // namespace cafetiere::test
