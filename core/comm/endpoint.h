// SPDX-License-Identifier: Apache-2.0
// Endpoint: how messages reach one peer and come from it, whatever carries them.
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

/// One side of the way between two ranks. Messages are posted, then moved by progress(), which never
/// waits; they arrive in the order in which they were posted. By one thread at a time.
class Endpoint {
 public:
  /// Bytes that a call has moved.
  struct Progress {
    size_t sent = 0, received = 0;
    bool any() const { return sent + received > 0; }
  };

  Endpoint() = default;
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  /// What carries the bytes, for logs: "TCP", "TLS", "shared memory", "memory of the process", "UCX".
  virtual std::string transport() const = 0;

  /// Posts a message. Its bytes stay as they are until settled() says yes, or give_up() returned.
  virtual void send(const void* data, size_t bytes) = 0;
  /// Posts room for a message of exactly `bytes`. Where `in_place` is given, the message may stay
  /// where it lies; the place is stored there then, and is valid until release().
  virtual void receive(void* data, size_t bytes, const void** in_place) = 0;
  /// Whether posted messages are still to leave, or to come.
  virtual bool sending() const = 0;
  virtual bool receiving() const = 0;

  /// Moves what can be moved now. kUnavailable: the peer is gone; kInternal: it sends what is not
  /// expected here.
  virtual Result<Progress> progress() = 0;
  /// What was received in place is not needed any more. kUnavailable: the peer gave up meanwhile, so
  /// what was read there may be wrong.
  virtual Status release() { return {}; }
  /// Whether the peer has all of what was sent; to be asked when nothing is sending().
  virtual Result<bool> settled() { return true; }

  /// Announces that the caller is about to sleep in poll(), and adds to `polls` what ends that sleep
  /// when there is something to do here. False: there is something to do now, so do not sleep. Each
  /// call is followed by disarm().
  virtual bool arm(std::vector<pollfd>* polls) = 0;
  /// The caller is awake again.
  virtual void disarm() {}

  /// After an error: neither side touches the caller's memory any more. Nothing can be sent or
  /// received afterwards.
  virtual void give_up() {}

  /// Long messages that lie in `memory` may from now on be read there by the peer.
  virtual void lend(const std::shared_ptr<const SharedMemory>& /*memory*/) {}
};

}  // namespace cafetiere
