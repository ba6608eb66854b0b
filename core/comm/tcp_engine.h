// TcpEngine: moves the messages of one exchange over all data connections at once.
#pragma once

#include <poll.h>

#include <atomic>
#include <functional>
#include <vector>

#include "core/comm/group.h"
#include "core/comm/mesh.h"

namespace cafetiere {

/// One thread drives every send and receive with non-blocking calls between the sockets and the
/// caller's memory. Nothing is copied on the way and nothing is allocated after the first rounds.
class TcpEngine {
 public:
  /// `links` outlives the engine. `wake` becomes readable, and `closed` true, when the group ends.
  /// `heard` is told of every peer that bytes come from.
  TcpEngine(int rank, const std::vector<Link>& links, int wake, const std::atomic<bool>& closed,
            std::function<void(int peer)> heard);

  /// Runs one exchange to its end. kCancelled means: the group was closed meanwhile.
  Status run(std::span<const Send> sends, std::span<const Receive> receives);

  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }

 private:
  struct FrameHeader {
    uint32_t magic;
    uint32_t sequence;  // of this direction of this connection
    uint64_t bytes;
  };

  /// One direction of one connection: its messages in order, and how far the current one is.
  struct Lane {
    std::vector<iovec> messages;
    size_t next = 0;    // the current message
    size_t offset = 0;  // bytes of its header and payload that are done
    uint32_t sequence = 0;
    FrameHeader header{};

    bool busy() const { return next < messages.size(); }
  };

  /// Both directions of the connection to one peer.
  struct Wire {
    int fd = -1;
    Lane out, in;
  };

  void load(std::span<const Send> sends, std::span<const Receive> receives);
  Result<bool> pump(int peer);
  Result<bool> pump_out(int peer);
  Result<bool> pump_in(int peer);
  Status check_header(int peer) const;
  void advance(Lane* lane, size_t bytes);
  void wait();
  Status broken(int peer, ssize_t result) const;

  const int rank_;
  const std::vector<Link>& links_;
  const int wake_;
  const std::atomic<bool>& closed_;
  const std::function<void(int)> heard_;
  std::vector<Wire> wires_;
  std::vector<int> active_;  // peers with something left to do
  std::vector<pollfd> polls_;
  std::atomic<uint64_t> bytes_sent_{0};
};

}  // namespace cafetiere
