// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <numeric>

#include "ranks.h"

namespace cafetiere::test {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;

class GroupTest : public TransportTest {};
INSTANTIATE_TEST_SUITE_P(Transports, GroupTest, kTransports, transport_name);

TEST_P(GroupTest, ExchangesMessagesOfEverySizeInOrder) {
  const int size = 3;
  // Larger than all socket buffers together: only a duplex engine gets these through.
  const std::vector<size_t> counts = {0, 1, 7, 4096, 100'003, 6'000'000};
  auto groups = make_groups(GetParam(), size);
  expect_ok(on_ranks(size, [&](int rank) -> Status {
    const auto value = [](int from, int to, size_t message) {
      return static_cast<int>(from * 100 + to * 10 + static_cast<int>(message));
    };
    std::vector<std::vector<int>> out, in;
    std::vector<Send> sends;
    std::vector<Receive> receives;
    for (size_t m = 0; m < counts.size(); ++m) {
      for (int peer = 0; peer < size; ++peer) {
        if (peer == rank) continue;
        out.emplace_back(counts[m], value(rank, peer, m));
        in.emplace_back(counts[m], -1);
        sends.push_back({peer, out.back().data(), counts[m] * sizeof(int)});
        receives.push_back({peer, in.back().data(), counts[m] * sizeof(int)});
      }
    }
    CFT_TRY(groups[rank]->exchange(sends, receives));
    size_t i = 0;
    for (size_t m = 0; m < counts.size(); ++m) {
      for (int peer = 0; peer < size; ++peer) {
        if (peer == rank) continue;
        EXPECT_EQ(in[i], std::vector<int>(counts[m], value(peer, rank, m)));
        ++i;
      }
    }
    EXPECT_GT(groups[rank]->counters().bytes_sent, 48'000'000u);
    return {};
  }));
}

TEST_P(GroupTest, ManySmallExchangesStayInStep) {
  const int size = 4;
  auto groups = make_groups(GetParam(), size);
  expect_ok(on_ranks(size, [&](int rank) -> Status {
    for (int round = 0; round < 500; ++round) {
      const int out = round * size + rank;
      int in = -1;
      const Send send{(rank + 1) % size, &out, sizeof out};
      const Receive receive{(rank + size - 1) % size, &in, sizeof in};
      CFT_TRY(groups[rank]->exchange({&send, 1}, {&receive, 1}));
      EXPECT_EQ(in, round * size + (rank + size - 1) % size);
    }
    return {};
  }));
}

TEST_P(GroupTest, WrongSizeIsAnErrorOnBothSides) {
  auto groups = make_groups(GetParam(), 2);
  const auto results = on_ranks(2, [&](int rank) -> Status {
    std::vector<char> bytes(100);
    const Send send{1, bytes.data(), 12};
    const Receive receive{0, bytes.data(), 16};
    if (rank == 1) return groups[1]->exchange({}, {&receive, 1});
    CFT_TRY(groups[0]->exchange({&send, 1}, {}));
    const Receive never{1, bytes.data(), 1};
    return groups[0]->exchange({}, {&never, 1});
  });
  EXPECT_EQ(results[1].code(), ErrorCode::kInternal);
  EXPECT_THAT(results[1].message(),
              AllOf(HasSubstr("rank 0 sends 12 bytes"), HasSubstr("rank 1 expects 16")));
  EXPECT_EQ(results[0].code(), ErrorCode::kUnavailable);
  EXPECT_THAT(results[0].message(), HasSubstr("rank 1"));
}

TEST_P(GroupTest, RefusesMessagesToItselfAndToNobody) {
  for (int peer : {0, 2, -1}) {
    auto groups = make_groups(GetParam(), 2);
    const Send send{peer, "x", 1};
    const Status status = groups[0]->exchange({&send, 1}, {});
    EXPECT_EQ(status.code(), ErrorCode::kInternal);
    EXPECT_THAT(status.message(), HasSubstr("rank 0"));
  }
}

TEST_P(GroupTest, CancelEndsEveryWait) {
  const int size = 3;
  auto groups = make_groups(GetParam(), size);
  std::thread canceller([&] { groups[0]->cancel(); });
  const auto results = on_ranks(size, [&](int rank) {
    char byte;
    const Receive receive{(rank + 1) % size, &byte, 1};
    return groups[rank]->exchange({}, {&receive, 1});
  });
  canceller.join();
  EXPECT_EQ(results[0].code(), ErrorCode::kCancelled) << results[0].message();
  for (int rank : {1, 2}) {
    EXPECT_EQ(results[rank].code(), ErrorCode::kUnavailable);
    EXPECT_THAT(results[rank].message(), HasSubstr("rank 0")) << "as seen by rank " << rank;
  }
}

TEST_P(GroupTest, ClosedGroupStaysClosed) {
  auto groups = make_groups(GetParam(), 2);
  groups[0]->cancel();
  for (int i = 0; i < 2; ++i) {
    const Send send{1, "x", 1};
    EXPECT_EQ(groups[0]->exchange({&send, 1}, {}).code(), ErrorCode::kCancelled);
  }
}

TEST_P(GroupTest, LeavingRankIsNamed) {
  const int size = 3;
  auto groups = make_groups(GetParam(), size);
  const auto results = on_ranks(size, [&](int rank) -> Status {
    if (rank == 1) {
      groups[1].reset();
      return {};
    }
    char byte;
    const Receive receive{1, &byte, 1};
    return groups[rank]->exchange({}, {&receive, 1});
  });
  for (int rank : {0, 2}) {
    EXPECT_EQ(results[rank].code(), ErrorCode::kUnavailable) << results[rank].message();
    EXPECT_THAT(results[rank].message(), HasSubstr("rank 1"));
  }
}

TEST_P(GroupTest, FinishedRankDoesNotDisturbTheOthers) {
  const int size = 3;
  auto groups = make_groups(GetParam(), size);
  expect_ok(on_ranks(size, [&](int rank) -> Status {
    if (rank == 2) {
      groups[2].reset();
      return {};
    }
    for (int i = 0; i < 200; ++i) {
      char in = 0;
      const Send send{1 - rank, "y", 1};
      const Receive receive{1 - rank, &in, 1};
      CFT_TRY(groups[rank]->exchange({&send, 1}, {&receive, 1}));
      EXPECT_EQ(in, 'y');
    }
    return {};
  }));
}

int port_of(const std::string& address) {
  return std::stoi(address.substr(address.rfind(':') + 1));
}

// As behind a firewall; the first port of the range is another program's.
TEST(Ports, RanksListenOnThoseThatAreFree) {
  const Fd other = std::move(*listen_on("127.0.0.1"));
  const int taken = port_of(local_address(other.get()).text());
  if (taken > 65500) GTEST_SKIP() << "no room for a range behind port " << taken;
  for (int again = 0; again < 2; ++again) {
    std::vector<std::unique_ptr<TcpGroup>> groups;
    std::vector<std::string> addresses;
    for (int rank = 0; rank < 2; ++rank) {
      GroupOptions options = tcp_options(rank, 2);
      options.ports = {taken, taken + 30};
      auto group = TcpGroup::listen(options);
      ASSERT_TRUE(group.ok()) << group.status().message();
      addresses.push_back((*group)->address());
      EXPECT_GT(port_of(addresses.back()), taken);
      EXPECT_LE(port_of(addresses.back()), taken + 30);
      groups.push_back(std::move(*group));
    }
    EXPECT_NE(addresses[0], addresses[1]);
    expect_ok(on_ranks(2, [&](int rank) { return groups[rank]->connect(addresses); }));
  }
  GroupOptions options = tcp_options(0, 2);
  options.ports = {taken, taken};
  EXPECT_THAT(TcpGroup::listen(options).status().message(), HasSubstr("is free at '127.0.0.1'"));
}

TEST(Ports, ThatAreNoneAreTold) {
  EXPECT_EQ(parse_ports("40000")->last, 40000);
  EXPECT_EQ(parse_ports("40000-40100")->last, 40100);
  EXPECT_EQ(parse_ports("")->last, 0);
  for (const char* wrong : {"0", "a", "40000-", "-40000", "40100-40000", "1-70000", "1 - 2"}) {
    EXPECT_THAT(parse_ports(wrong).status().message(), HasSubstr("such as 40000-40100")) << wrong;
  }
}

}  // namespace
}  // namespace cafetiere::test
