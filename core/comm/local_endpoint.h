// SPDX-License-Identifier: Apache-2.0
// LocalEndpoint: a peer that is a thread of the same process.
#pragma once

#include <sys/uio.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/comm/endpoint.h"
#include "core/comm/socket.h"

namespace cafetiere {

/// The state of a rank that is visible to its peers.
class LocalMember {
 public:
  LocalMember();

  /// Becomes readable when the rank is woken; invalid if the system provides no eventfd.
  int fd() const { return wake_.get(); }
  /// Wakes the rank if it sleeps; called after a change that it may wait for.
  void notify();
  /// Wakes it in any case.
  void wake();
  /// Called by the rank before it checks for work once more and sleeps.
  void arm();
  void disarm();

  std::atomic<bool> left{false};  ///< will not send or receive any more

 private:
  const Fd wake_;
  std::atomic<bool> asleep_{false};
  bool armed_ = false;
};

/// The messages from one rank to another. They stay in the sender's memory until received.
struct LocalLane {
  std::mutex mutex;
  std::deque<iovec> posted;        // guarded; the lock is held while one is copied
  std::atomic<uint64_t> taken{0};  // number of messages so far
};

/// The receiver copies directly from the sender's memory.
class LocalEndpoint : public Endpoint {
 public:
  struct Ends {
    std::shared_ptr<LocalMember> self, peer;
    std::shared_ptr<LocalLane> out, in;
  };

  LocalEndpoint(PeerName name, Ends ends) : name_(std::move(name)), ends_(std::move(ends)) {}

  std::string transport() const override { return "memory of the process"; }
  void send(const void* data, size_t bytes) override;
  void receive(void* data, size_t bytes, const void** in_place) override;
  bool sending() const override { return taken() != posted_; }
  bool receiving() const override { return !expected_.empty(); }
  /// Also when all has been sent, but progress() has not seen it: else arm() would never sleep.
  bool pending() const override { return seen_taken_ != posted_ || receiving(); }
  Result<Progress> progress() override;
  bool arm(std::vector<pollfd>* polls) override;
  void disarm() override { ends_.self->disarm(); }
  void give_up() override;

 private:
  uint64_t taken() const { return ends_.out->taken.load(std::memory_order_acquire); }
  Result<size_t> take();

  const PeerName name_;
  const Ends ends_;
  std::deque<iovec> expected_;
  uint64_t posted_ = 0, seen_taken_ = 0;  // messages
  size_t news_ = 0;                       // bytes posted since the last progress()
};

}  // namespace cafetiere
