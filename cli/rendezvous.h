// SPDX-License-Identifier: Apache-2.0
// Rendezvous: how ranks that share no folder find each other.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/comm/socket.h"

namespace cafetiere {

/// A meeting at an address that all ranks are told. The first that can listen there is rank 0; the
/// others connect and are numbered in the order in which they come. Messages are JSON behind their
/// length. Whoever reaches the address may join, and hears the secret: it is for networks that are
/// trusted.
class Rendezvous {
 public:
  /// Waits at most `limit` for the others, as a whole. `server`: "host:port".
  static Result<Rendezvous> join(const std::string& server, int ranks, std::chrono::seconds limit);

  int rank() const { return rank_; }
  /// Known to all ranks of the run.
  const std::string& secret() const { return secret_; }
  /// This machine's address, as the others see it.
  const std::string& host() const { return host_; }

  /// Tells the address at which this rank listens; those of all ranks, in their order.
  Result<std::vector<std::string>> exchange(const std::string& address);

 private:
  using Time = std::chrono::steady_clock::time_point;

  Status welcome(const Fd& listener);
  Status greet(const SocketAddress& server);

  int ranks_ = 1, rank_ = 0;
  Time deadline_;
  std::string secret_, host_;
  std::vector<Fd> others_;  // of rank 0: those from 1 on; of another rank: rank 0
};

}  // namespace cafetiere
