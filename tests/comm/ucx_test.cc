// SPDX-License-Identifier: Apache-2.0
// UCX as what carries messages: the same bits as TCP, and what is said where it cannot be used. Its
// tcp and shared-memory transports stand for those of the hardware.
#include <gmock/gmock.h>

#include <mutex>

#include "children.h"
#include "core/comm/shard_tree.h"

namespace cafetiere::test {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::SizeIs;
using testing::UnorderedElementsAre;

class UcxTest : public TransportTest {};
INSTANTIATE_TEST_SUITE_P(Transports, UcxTest,
                         testing::Values(Transport::kUcxTcp, Transport::kUcxShared),
                         transport_name);

/// The sum of what `size` ranks have, as rank 0 gets it, and what carried it.
std::pair<std::vector<float>, std::string> sum_over(Transport transport, int size, size_t count) {
  auto groups = make_groups(transport, size);
  std::vector<std::vector<float>> sums(size);
  expect_ok(on_ranks(size, [&](int rank) -> Status {
    std::vector<float> mine(count);
    for (size_t i = 0; i < count; ++i) mine[i] = 1.0F / float(1 + (i * 7 + rank * 13) % 1009);
    sums[rank].resize(count);
    TreeSum sum({rank, rank + 1}, size, count, nullptr);
    CFT_TRY(sum.add(mine));
    return all_reduce(groups[rank].get(), sum, sums[rank]);
  }));
  for (const auto& sum : sums) EXPECT_EQ(sum, sums[0]);
  return {sums[0], dynamic_cast<TcpGroup&>(*groups[0]).transport(1)};
}

TEST_P(UcxTest, SumsHaveTheBitsOfTcp) {
  for (const int size : {2, 3}) {
    for (const size_t count : {1, 1000, 1'000'003}) {
      const auto [by_tcp, tcp] = sum_over(Transport::kTcp, size, count);
      const auto [by_ucx, ucx] = sum_over(GetParam(), size, count);
      EXPECT_EQ(tcp, "TCP");
      EXPECT_THAT(ucx, HasSubstr("UCX 1."));
      EXPECT_EQ(by_ucx, by_tcp) << count << " numbers on " << size << " ranks";
    }
  }
}

TEST_P(UcxTest, ARankThatIsKilledIsNamed) {
  Children children(
      2, 30000,
      [](Group& group) -> Status {
        std::vector<char> bytes(1 << 22);
        const Send send{0, bytes.data(), bytes.size()};
        while (true) CFT_TRY(group.exchange({&send, 1}, {}));
      },
      GetParam());
  std::vector<char> bytes(1 << 22);
  const Receive receive{1, bytes.data(), bytes.size()};
  ASSERT_TRUE(children.group().exchange({}, {&receive, 1}).ok());
  children.signal(1, SIGKILL);
  Status status;
  while (status.ok()) status = children.group().exchange({}, {&receive, 1});
  EXPECT_EQ(status.code(), ErrorCode::kUnavailable) << status.message();
  EXPECT_THAT(status.message(), HasSubstr("rank 1"));
}

std::string ucx_version() {
  return std::string("UCX ") + (*ucp::Library::find())->get_version_string();
}

/// What two ranks log, and what carries their messages in the end.
std::vector<std::string> logged(const std::function<void(GroupOptions*)>& adapt,
                                const std::string& transport) {
  std::mutex mutex;
  std::vector<std::string> lines;
  const auto groups = make_tcp_groups(2, [&](GroupOptions* o) {
    o->infiniband = true;
    o->log = Logger([&](LogLevel, std::string_view line) {
      std::lock_guard lock(mutex);
      lines.emplace_back(line);
    });
    adapt(o);
  });
  for (int rank : {0, 1}) {
    EXPECT_EQ(dynamic_cast<TcpGroup&>(*groups[rank]).transport(1 - rank), transport);
  }
  return lines;
}

TEST_P(UcxTest, IsToldWhereItIsUsed) {
  const auto lines = logged([](GroupOptions*) {}, ucx_version());
  EXPECT_THAT(lines,
              UnorderedElementsAre(
                  "rank 0: connection infiniband: " + ucx_version() + " is used between hosts",
                  "rank 1: connection infiniband: " + ucx_version() + " is used between hosts"));
}

TEST(Ucx, IsNotNeededWithinAHost) {
  if (const auto ucx = ucp::Library::find(); !ucx.ok()) GTEST_SKIP() << ucx.status().message();
  const auto lines = logged([](GroupOptions* o) { o->shared_memory = true; }, "shared memory");
  EXPECT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines, Each(HasSubstr("all ranks share the memory of this host")));
}

TEST(Ucx, OneRankThatDoesNotAskKeepsAllOnTcp) {
  if (const auto ucx = ucp::Library::find(); !ucx.ok()) GTEST_SKIP() << ucx.status().message();
  const auto lines = logged([](GroupOptions* o) { o->infiniband = o->rank == 0; }, "TCP");
  EXPECT_THAT(lines, SizeIs(1));
  EXPECT_THAT(lines,
              Each("rank 0: connection infiniband: TCP is used between hosts: rank 1 did not "
                   "ask for UCX"));
}

TEST(Ucx, IsNotTakenForWhatIsEncrypted) {
  const auto lines = logged([](GroupOptions* o) { o->encrypt = true; }, "TLS");
  EXPECT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines, Each(HasSubstr("the connections are encrypted, which UCX cannot do")));
}

TEST(Ucx, ThatFindsNoWayIsTold) {
  if (const auto ucx = ucp::Library::find(); !ucx.ok()) GTEST_SKIP() << ucx.status().message();
  setenv("UCX_TLS", "no_such_thing", 1);
  const auto lines = logged([](GroupOptions*) {}, "TCP");
  EXPECT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines, Each(HasSubstr("rank 0: UCX cannot")));
}

TEST(Ucx, ThatIsNotInstalledIsTold) {
  if (ucp::Library::find().ok()) GTEST_SKIP() << "it is installed";
  const auto lines = logged([](GroupOptions*) {}, "TCP");
  EXPECT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines, Each(HasSubstr("rank 0: UCX is not installed (libucp.so.0")));
}

}  // namespace
}  // namespace cafetiere::test
