// SPDX-License-Identifier: Apache-2.0
// Monitor: one thread per group that distinguishes a slow peer from a dead one.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/guarded_thread.h"
#include "core/base/status.h"
#include "core/comm/mesh.h"
#include "core/comm/pulse.h"

namespace cafetiere {

/// Sends heartbeats to every peer and expects theirs, on the control connections, so that a peer
/// that computes for minutes counts as alive while a stopped or unreachable one does not.
class Monitor {
 public:
  using OnFailure = std::function<void(Status)>;

  /// `links` must outlive the monitor, and only the monitor may use their control connections. The
  /// silence of a peer counts only after `first_ms`: it may still be connecting to others.
  /// `on_failure` is called once, from the monitor's thread.
  Monitor(int rank, std::vector<PeerLink>& links, int timeout_ms, int first_ms,
          OnFailure on_failure);
  /// Starts the thread. Called once.
  Status start();
  /// Stops the thread; call goodbye() first.
  ~Monitor();

  /// Records that `peer` is alive: called for any bytes from it.
  void heard(int peer) { heard_[peer].store(now(), std::memory_order_relaxed); }

  /// Sends the final message to the peers: this rank leaves cleanly or, with a reason, because the
  /// group failed. From any thread.
  void goodbye(const std::string& reason);

 private:
  using Ticks = int64_t;  // nanoseconds of the steady clock
  static Ticks now();

  void loop();
  int wait_ms(Ticks next_beat) const;
  Status listen_to(int peer);
  ssize_t receive(int peer, std::span<char> bytes);
  Status take_pulses(int peer);
  void beat();
  Status judge_silence() const;
  void send(size_t peer, const Pulse& pulse);
  std::string name(int peer) const;

  struct PeerReader {
    std::vector<char> bytes;  // an incomplete pulse
    bool closed = false;      // the peer left cleanly
  };

  const int rank_;
  std::vector<PeerLink>& links_;
  const std::chrono::nanoseconds timeout_;
  const std::chrono::nanoseconds interval_;
  const OnFailure on_failure_;
  std::unique_ptr<std::atomic<Ticks>[]> heard_;
  std::vector<PeerReader> readers_;
  std::mutex stream_mutex_;  // serializes use of the control connections
  Fd wake_;
  std::atomic<bool> stop_{false};
  GuardedThread thread_;
};

}  // namespace cafetiere
