// SPDX-License-Identifier: Apache-2.0
// Ranks that die, hang or are merely slow. The bounds on time are wide: they tell "at once" from
// "after a time-out" and from "never", on a busy machine too.
#include <gmock/gmock.h>

#include <chrono>

#include "children.h"
#include "core/comm/collectives.h"

namespace cafetiere::test {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

class Stopwatch {
 public:
  auto elapsed() const { return std::chrono::steady_clock::now() - start_; }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Exchanges large and small messages with all peers until that fails.
Status exchange_forever(Group& group) {
  std::vector<char> out(3'000'000), in(out.size() * group.size());
  while (true)
    CFT_TRY(
        all_gather(&group, std::as_bytes(std::span(out)), std::as_writable_bytes(std::span(in))));
}

/// Waits for a byte of the last rank that never comes.
Status wait_for_last(Group& group) {
  char byte;
  const int last = group.size() - 1;
  const Receive receive{group.rank() == last ? 0 : last, &byte, 1};
  return group.exchange({}, {&receive, 1});
}

class FaultTest : public testing::TestWithParam<Transport> {};
INSTANTIATE_TEST_SUITE_P(Transports, FaultTest,
                         testing::Values(Transport::kTcp, Transport::kEncrypted,
                                         Transport::kShared),
                         transport_name);

TEST_P(FaultTest, KilledWhileOthersWait) {
  Children children(3, 60'000, wait_for_last, GetParam());
  children.signal(2, SIGKILL);
  const Stopwatch watch;
  const Status status = wait_for_last(children.group());
  EXPECT_LT(watch.elapsed(), seconds(10));
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("rank 2"));
  const std::string other = children.report(1);
  EXPECT_THAT(other, StartsWith("4 "));
  EXPECT_THAT(other, HasSubstr("rank 2"));
  EXPECT_LT(watch.elapsed(), seconds(10));
}

TEST_P(FaultTest, KilledInTheMiddleOfTransfers) {
  Children children(3, 60'000, exchange_forever, GetParam());
  std::thread killer([&] {
    while (children.group().counters().bytes_sent < 20'000'000) std::this_thread::yield();
    children.signal(2, SIGKILL);
  });
  const Status status = exchange_forever(children.group());
  killer.join();
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("rank 2"));
  EXPECT_THAT(children.report(1), StartsWith("4 "));
}

TEST_P(FaultTest, StoppedRankIsToldAfterTheTimeOut) {
  Children children(3, 1000, wait_for_last, GetParam());
  children.signal(2, SIGSTOP);
  const Stopwatch watch;
  const Status status = wait_for_last(children.group());
  EXPECT_LT(watch.elapsed(), seconds(20));
  EXPECT_THAT(status.message(), HasSubstr("rank 2"));
  EXPECT_THAT(status.message(), HasSubstr("silent"));
  EXPECT_THAT(children.report(1), HasSubstr("rank 2"));
}

TEST_P(FaultTest, StoppedInTheMiddleOfTransfers) {
  Children children(2, 1000, exchange_forever, GetParam());
  std::thread stopper([&] {
    while (children.group().counters().bytes_sent < 20'000'000) std::this_thread::yield();
    children.signal(1, SIGSTOP);
  });
  const Status status = exchange_forever(children.group());
  stopper.join();
  EXPECT_EQ(status.code(), ErrorCode::kTimeout);
  EXPECT_THAT(status.message(), HasSubstr("rank 1"));
}

TEST_P(FaultTest, StoppedAndContinuedRankLearnsThatItWasGivenUp) {
  Children children(2, 1000, wait_for_last, GetParam());
  children.signal(1, SIGSTOP);
  EXPECT_EQ(wait_for_last(children.group()).code(), ErrorCode::kTimeout);
  children.signal(1, SIGCONT);
  const std::string report = children.report(1);
  EXPECT_THAT(report, HasSubstr("rank 0"));
  EXPECT_THAT(report, StartsWith("4 "));
}

TEST_P(FaultTest, SlowRankIsNotADeadOne) {
  const auto timeout = std::chrono::milliseconds(1500);
  auto groups = make_tcp_groups(2, [&](GroupOptions* o) {
    *o = options_of(GetParam(), o->rank, 2);
    o->timeout_ms = static_cast<int>(timeout.count());
  });
  expect_ok(on_ranks(2, [&](int rank) -> Status {
    std::vector<char> bytes(64 << 20);  // does not fit in the buffers: the sender waits
    if (rank == 0) {
      const Send send{1, bytes.data(), bytes.size()};
      return groups[0]->exchange({&send, 1}, {});
    }
    std::this_thread::sleep_for(2 * timeout);  // computes
    const Receive receive{0, bytes.data(), bytes.size()};
    return groups[1]->exchange({}, {&receive, 1});
  }));
}

}  // namespace
}  // namespace cafetiere::test
