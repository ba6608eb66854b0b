// SPDX-License-Identifier: Apache-2.0
// Group: the ranks of a training run, and the operation that all communication is built on.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/comm/shared_memory.h"
#include "core/comm/stream.h"

namespace cafetiere {

/// Bytes for one peer. Messages between two ranks arrive in the order in which they were posted.
struct Send {
  int peer;
  const void* data;
  size_t bytes;
};

/// A buffer for a message from one peer; its size must equal that of the message. In a schedule,
/// `in_place`, if given, is set to the address of the bytes if they can be read there without a
/// copy to `data`; it is valid until received() returns.
struct Receive {
  int peer;
  void* data;
  size_t bytes;
  const void** in_place = nullptr;
};

/// A long exchange in rounds, so that computation overlaps with transfers and buffers are reused.
/// Ranks may have different rounds, but the order of messages must match.
class Schedule {
 public:
  virtual ~Schedule() = default;
  /// The number of rounds; at least one.
  virtual int rounds() const = 0;
  /// Whether `round` can begin, if another thread is still computing its values: called when the
  /// sends of the previous round are done, and again whenever wake_fd() becomes readable.
  virtual Result<bool> ready(int /*round*/) { return true; }
  virtual int wake_fd() const { return -1; }
  /// Adds the sends of `round`, which is ready. Messages in exported memory (lend()) must not
  /// change until the schedule ends.
  virtual void sends(int round, std::vector<Send>* messages) = 0;
  /// Adds the receives of `round`; called after sends() of this round and received() of the
  /// previous one.
  virtual void receives(int round, std::vector<Receive>* messages) = 0;
  /// All receives of `round` are done. Sends may still be in progress.
  virtual void received(int round) = 0;
};

/// Calls `ready` until it returns true, sleeping in between until `wake_fd` is readable.
using ReadyTest = std::function<Result<bool>()>;
Status wait_until_ready(const ReadyTest& ready, int wake_fd);

/// An additional connection to each peer, for a separate protocol.
struct PeerLinks {
  std::vector<Stream> streams;  ///< indexed by rank; invalid for the rank itself
  int cancelled = -1;           ///< readable once this rank has called cancel(); owned by the group
  int timeout_ms = 0;           ///< silence after which a peer is considered lost; 0: never
};

/// `size` ranks that can reach each other. No global state: a process can have several groups.
/// Every wait ends: with success, with kUnavailable (a peer, named by rank, is gone), with kTimeout
/// (a peer, named by rank, was silent) or with kCancelled. After an error the group is closed and
/// every further call fails immediately.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Sends and receives all messages, concurrently and in both directions, then returns. Never
  /// deadlocks if the peers post matching calls in the same order. A message to the rank itself is
  /// an error.
  virtual Status exchange(std::span<const Send> sends, std::span<const Receive> receives) = 0;

  /// Runs a schedule to completion, like exchange() for each round; if the transport supports it,
  /// sends run ahead of receives.
  virtual Status run(Schedule* schedule);

  /// From now on ranks on this host may read long messages directly from `memory`. Not to be called
  /// during another call.
  virtual void lend(const std::shared_ptr<const SharedMemory>& /*memory*/) {}

  /// Opens the connections of a Messenger; every rank must call it at the same point. They stay
  /// open when a loss closes the group.
  virtual Result<PeerLinks> open_links() {
    return internal_error("group: this kind has no connections of its own");
  }

  /// Closes all connections, so that pending calls on all ranks fail within milliseconds. May be
  /// called from any thread.
  virtual void cancel() = 0;

  /// Bytes sent so far and seconds spent in exchange(), for progress reports.
  struct Counters {
    uint64_t bytes_sent = 0;
    double seconds = 0;
  };
  virtual Counters counters() const = 0;
};

/// A group of `size` ranks in this process, one object per rank, for tests.
std::vector<std::unique_ptr<Group>> make_local_groups(int size);

}  // namespace cafetiere
