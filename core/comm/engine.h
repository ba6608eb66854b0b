// SPDX-License-Identifier: Apache-2.0
// Engine: moves the messages of one schedule between this rank and all others concurrently.
#pragma once

#include <poll.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/endpoint.h"
#include "core/comm/group.h"
#include "core/comm/spinner.h"

namespace cafetiere {

/// One thread drives all sends and receives, over endpoints of any transport. When nothing can be
/// moved, it spins for a moment and then sleeps.
class Engine {
 public:
  using Endpoints = std::vector<std::unique_ptr<Endpoint>>;

  /// `endpoints` are indexed by rank, null for `rank` itself. When the group ends, `wake` becomes
  /// readable and `closed` true. `heard` is called with each peer from which bytes arrive.
  Engine(int rank, Endpoints endpoints, int wake, const std::atomic<bool>& closed,
         std::function<void(int peer)> heard);

  /// Uses `endpoint` for `peer` from the next schedule on; the peer must do the same at that point.
  void replace(int peer, std::unique_ptr<Endpoint> endpoint);

  std::string transport(int peer) const { return endpoints_[peer]->transport(); }

  /// Lets peers that support it read long messages in `memory` directly (zero-copy).
  void lend(const std::shared_ptr<const SharedMemory>& memory);

  /// Runs a schedule to completion. kCancelled: the group was closed meanwhile.
  Status run(Schedule* schedule);

  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }

 private:
  Status pump(Schedule* schedule);
  Status post_sends(Schedule* schedule, int round);
  Status post_receives(Schedule* schedule, int round);
  Result<bool> progress();
  Result<bool> settled();
  void wait(int schedule_wake);

  template <class Fn>
  void each(const Fn& fn);

  const int rank_;
  Endpoints endpoints_;
  const int wake_;
  const std::atomic<bool>& closed_;
  const std::function<void(int)> heard_;
  std::vector<Send> sends_;  // of the current round
  std::vector<Receive> receives_;
  bool sending_ = false, receiving_ = false;  // the current rounds have messages in transit
  std::vector<pollfd> polls_;
  Spinner spinner_;
  std::atomic<uint64_t> bytes_sent_{0};
};

}  // namespace cafetiere
