// SPDX-License-Identifier: Apache-2.0
// Messenger: requests and replies between two ranks, independent of the group's exchange(), for
// work that does not wait for the slowest rank. The loss of a rank is an event, not an error.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/base/guarded_thread.h"
#include "core/base/status.h"
#include "core/comm/group.h"

namespace cafetiere {

/// A thread per rank owns its connections, so that requests are answered, one at a time, while the
/// rank computes. Every wait ends: with the reply, with the loss of the peer (its process is gone,
/// or it was silent for the group's time-out), or with the end of this messenger.
class Messenger {
 public:
  using Bytes = std::vector<std::byte>;

  /// A request to one peer. `topic` and `index` are defined by the user. The memory must not change
  /// until ask() returns.
  struct Request {
    int peer = -1;
    uint32_t topic = 0, index = 0;
    std::span<const std::byte> data = {};
    std::span<std::byte> reply = {};  ///< must have exactly the size of the peer's reply
    Status status = {};               ///< set by ask(): why there is no reply
  };

  /// Called on the messenger's thread; must not call ask() or wait for a thread that does.
  struct Events {
    /// Answers a request; the reply may reuse `data`. On an error the peer is dropped as lost.
    std::function<Result<Bytes>(int peer, uint32_t topic, uint32_t index, Bytes data)> answer;
    /// A peer is permanently gone; called once per peer.
    std::function<void(int peer, const Status& why)> lost;
  };

  /// Every rank must call it at the same point. `group` must outlive the messenger, which continues
  /// when a loss closes the group; only cancel() on this rank ends both. A peer that sends a
  /// request of more than `max_request` bytes is dropped as lost.
  static Result<std::unique_ptr<Messenger>> open(Group* group, size_t max_request, Events events);
  /// Sends what is queued for live peers, then leaves cleanly.
  ~Messenger();

  /// Sends all requests and returns when each has its reply or its error; of several requests to a
  /// peer, each is sent when the previous one has been answered. Used by one thread at a time. An
  /// error: this messenger has ended, see status().
  Status ask(std::span<Request> requests);

  /// Why it has ended: kCancelled, or kUnavailable if this process was stalled for so long that the
  /// others have given up on it.
  Status status() const;
  /// Whether requests can still be sent to the peer.
  bool alive(int peer) const;

 private:
  using Clock = std::chrono::steady_clock;
  struct Peer;

  Messenger(Group* group, PeerLinks links, size_t max_request, Events events);
  void loop();
  void take_posted();
  void leave();
  bool gone() const;
  void start_next(Peer* peer);
  bool pump_all();
  Result<bool> pump_out(Peer* peer);
  Result<bool> pump_in(Peer* peer);
  Status begin_body(Peer* peer);
  Status deliver(Peer* peer);
  bool was_stalled();
  void keep_time(Clock::time_point now);
  std::chrono::milliseconds time_left() const;
  void wait(std::chrono::milliseconds limit);
  void finish(Request* request, Status status);
  void lose(Peer* peer, Status why);
  void close(Status why);
  void fail(const Status& why);

  const int cancelled_;                      // readable once the group has been cancelled
  const std::chrono::milliseconds timeout_;  // zero: no time-out
  const std::chrono::milliseconds interval_;
  const size_t max_request_;
  const Events events_;
  std::vector<std::unique_ptr<Peer>> peers_;  // used by the thread only; null for the rank itself
  Clock::time_point last_beat_, leave_by_;
  bool leaving_ = false;
  std::atomic<bool> stop_{false};
  Fd wake_;

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable answered_;
  std::vector<Request*> posted_;  // not yet seen by the thread
  size_t open_ = 0;               // requests that ask() waits for
  std::vector<bool> alive_;
  Status closed_;
  bool dead_ = false;  // the thread has failed with an exception and uses no request any more

  GuardedThread thread_;
};

}  // namespace cafetiere
