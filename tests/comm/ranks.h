// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of the test, over each transport.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/comm/group.h"
#include "core/comm/tcp_group.h"
#include "core/comm/ucx_library.h"

namespace cafetiere::test {

enum class Transport { kLocal, kTcp, kEncrypted, kShared, kUcxTcp, kUcxShared };

inline bool is_ucx(Transport transport) { return transport >= Transport::kUcxTcp; }

inline std::string transport_name(const testing::TestParamInfo<Transport>& info) {
  switch (info.param) {
    case Transport::kLocal:
      return "Local";
    case Transport::kTcp:
      return "Tcp";
    case Transport::kEncrypted:
      return "Encrypted";
    case Transport::kShared:
      return "Shared";
    case Transport::kUcxTcp:
      return "UcxTcp";
    default:
      return "UcxShared";
  }
}

inline const auto kTransports =
    testing::Values(Transport::kLocal, Transport::kTcp, Transport::kEncrypted, Transport::kShared,
                    Transport::kUcxTcp, Transport::kUcxShared);

/// A test over each transport; those over UCX are left out where it is not installed.
class TransportTest : public testing::TestWithParam<Transport> {
 protected:
  void SetUp() override {
    if (!is_ucx(GetParam())) return;
    if (const auto ucx = ucp::Library::find(); !ucx.ok()) GTEST_SKIP() << ucx.status().message();
    setenv("UCX_TLS", GetParam() == Transport::kUcxTcp ? "tcp,self" : "posix,self", 1);
  }
};

/// Options for a group on one machine, without shared memory; the time-outs are so wide that a busy
/// machine cannot hit them.
inline GroupOptions tcp_options(int rank, int size) {
  return {.rank = rank,
          .size = size,
          .bind = "127.0.0.1",
          .secret = "a secret of the test",
          .generation = "test/1",
          .timeout_ms = 30000,
          .connect_timeout_ms = 30000,
          .shared_memory = false,
          .log = Logger()};
}

/// Those of tcp_options(), for a transport that is not local.
inline GroupOptions options_of(Transport transport, int rank, int size) {
  GroupOptions options = tcp_options(rank, size);
  options.encrypt = transport == Transport::kEncrypted;
  options.shared_memory = transport == Transport::kShared;
  options.infiniband = is_ucx(transport);
  return options;
}

/// Calls fn(rank) on one thread a rank and returns the statuses.
inline std::vector<Status> on_ranks(int size, const std::function<Status(int)>& fn) {
  std::vector<Status> results(size);
  std::vector<std::thread> threads;
  for (int r = 0; r < size; ++r) threads.emplace_back([&, r] { results[r] = fn(r); });
  for (auto& t : threads) t.join();
  return results;
}

inline void expect_ok(const std::vector<Status>& results) {
  for (size_t r = 0; r < results.size(); ++r) {
    EXPECT_TRUE(results[r].ok()) << "rank " << r << ": " << results[r].message();
  }
}

/// A connected group; `adapt` may change the options of a rank first.
inline std::vector<std::unique_ptr<Group>> make_tcp_groups(
    int size, const std::function<void(GroupOptions*)>& adapt = [](GroupOptions*) {}) {
  std::vector<std::unique_ptr<TcpGroup>> groups;
  std::vector<std::string> addresses;
  for (int r = 0; r < size; ++r) {
    GroupOptions options = tcp_options(r, size);
    adapt(&options);
    auto group = TcpGroup::listen(options);
    EXPECT_TRUE(group.ok()) << group.status().message();
    addresses.push_back((*group)->address());
    groups.push_back(std::move(*group));
  }
  expect_ok(on_ranks(size, [&](int r) { return groups[r]->connect(addresses); }));
  return {std::make_move_iterator(groups.begin()), std::make_move_iterator(groups.end())};
}

inline std::vector<std::unique_ptr<Group>> make_groups(Transport transport, int size) {
  if (transport == Transport::kLocal) return make_local_groups(size);
  return make_tcp_groups(size, [&](GroupOptions* o) { *o = options_of(transport, o->rank, size); });
}

}  // namespace cafetiere::test
