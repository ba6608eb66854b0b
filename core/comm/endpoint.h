// SPDX-License-Identifier: Apache-2.0
// Endpoint: sends messages to one peer and receives messages from it, over any transport.
#pragma once

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/comm/shared_memory.h"

namespace cafetiere {

/// The two ranks of an endpoint, for messages.
struct PeerName {
  int self = 0, peer = 0;
  std::string address;  ///< of the peer

  std::string text() const;  ///< "rank 1 at 10.0.0.7:41000"
};

/// The error of a peer that sends `sent` bytes where this rank expects `expected`.
Status wrong_size(const PeerName& name, uint64_t sent, uint64_t expected);

/// One side of the connection between two ranks. Messages are posted, then moved by progress(),
/// which never blocks; they arrive in the order of posting. Used by one thread at a time.
class Endpoint {
 public:
  /// Bytes moved by a call.
  struct Progress {
    size_t sent = 0, received = 0;
    bool any() const { return sent + received > 0; }
  };

  Endpoint() = default;
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// The transport, for logs: "TCP", "TLS", "shared memory", "memory of the process", "UCX".
  virtual std::string transport() const = 0;

  /// Posts a message. Its bytes must not change while it is sending() or, in exported memory
  /// (lend()), until settled() returns true; or until give_up() has returned.
  virtual void send(const void* data, size_t bytes) = 0;
  /// Posts a buffer for a message of exactly `bytes`. If `in_place` is given, the message may be
  /// read where the peer stores it; `in_place` is then set to that address, valid until release().
  virtual void receive(void* data, size_t bytes, const void** in_place) = 0;
  /// Whether posted messages are still to be sent, or to be received.
  virtual bool sending() const = 0;
  virtual bool receiving() const = 0;
  /// Whether progress() has anything to do.
  virtual bool pending() const { return sending() || receiving(); }

  /// Moves what can be moved now. kUnavailable: the peer is gone; kInternal: it sent something
  /// unexpected.
  virtual Result<Progress> progress() = 0;
  /// The message received in place is no longer needed. kUnavailable: the peer gave up meanwhile,
  /// so the data read there may be invalid.
  virtual Status release() { return {}; }
  /// Whether the peer has received everything sent; call it when nothing is sending().
  virtual Result<bool> settled() { return true; }

  /// Announces that the caller is about to sleep in poll(), and adds to `polls` the descriptors
  /// that wake it when there is work here. False: there is work now, so do not sleep. Each call is
  /// followed by disarm().
  virtual bool arm(std::vector<pollfd>* polls) = 0;
  /// The caller is awake again.
  virtual void disarm() {}

  /// After an error: neither side accesses the caller's memory any more. Nothing can be sent or
  /// received afterwards.
  virtual void give_up() {}

  /// From now on the peer may read long messages directly from `memory` (zero-copy).
  virtual void lend(const std::shared_ptr<const SharedMemory>& /*memory*/) {}
};

}  // namespace cafetiere
