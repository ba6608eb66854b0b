// Group: the ranks of one training and the one operation that everything else is built on.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

/// Bytes for one peer. Messages between two ranks arrive in the order in which they were posted.
struct Send {
  int peer;
  const void* data;
  size_t bytes;
};

/// Room for bytes from one peer; the size must equal what the peer sends.
struct Receive {
  int peer;
  void* data;
  size_t bytes;
};

/// `size` ranks that can reach each other. No global state: many groups live in one process.
/// Every wait ends: with success, with kUnavailable (a peer is gone, named by rank), with kTimeout
/// (a peer stayed silent, named by rank) or with kCancelled. After an error the group is closed and
/// every further call fails at once.
class Group {
 public:
  virtual ~Group() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  /// Sends and receives all of it, in parallel and in both directions, then returns. Never
  /// deadlocks when the peers post matching calls in the same order. A message to oneself is an
  /// error.
  virtual Status exchange(std::span<const Send> sends, std::span<const Receive> receives) = 0;

  /// Closes all connections so that this and every other rank's pending call fails within
  /// milliseconds. May be called from any thread.
  virtual void cancel() = 0;

  /// Bytes sent so far and seconds spent in exchange(), for progress reports.
  struct Counters {
    uint64_t bytes_sent = 0;
    double seconds = 0;
  };
  virtual Counters counters() const = 0;
};

/// A group of `size` ranks in this process, one object a rank, for tests and for local[N].
std::vector<std::unique_ptr<Group>> make_local_groups(int size);

}  // namespace cafetiere
