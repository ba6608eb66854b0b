// SPDX-License-Identifier: Apache-2.0
// TcpEngine: moves the messages of one schedule over all data connections at once.
#pragma once

#include <poll.h>
#include <sys/uio.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/comm/group.h"
#include "core/comm/mesh.h"
#include "core/comm/shm_link.h"
#include "core/comm/spinner.h"

namespace cafetiere {

/// One thread drives every send and receive with non-blocking calls between the sockets and the
/// caller's memory. Nothing is copied on the way and nothing is allocated after the first rounds.
/// Where two ranks share memory the bytes go through that, and the socket serves to wake a sleeper
/// and to notice the end of a peer.
class TcpEngine {
 public:
  /// `links` outlives the engine, which alone uses their data connections. `wake` becomes readable, and `closed` true, when the group ends.
  /// `heard` is told of every peer that bytes come from.
  TcpEngine(int rank, std::vector<PeerLink>& links, int wake, const std::atomic<bool>& closed,
            std::function<void(int peer)> heard);

  /// Uses shared memory with the ranks that `links` has one for, from the next schedule on.
  void share(std::vector<std::unique_ptr<ShmLink>> links);

  /// Lets those ranks read long messages where they lie in `memory`.
  void lend(const std::shared_ptr<const SharedMemory>& memory);

  /// Runs a schedule to its end. kCancelled means: the group was closed meanwhile.
  Status run(Schedule* schedule);

  uint64_t bytes_sent() const { return bytes_sent_.load(std::memory_order_relaxed); }

 private:
  struct FrameHeader {
    uint32_t magic;
    uint32_t sequence;  // of this direction of this connection
    uint64_t bytes;
  };

  enum class Direction { kOut, kIn };

  /// One direction of one connection: its messages in order, and how far the current one is.
  struct Lane {
    std::vector<iovec> messages;
    std::vector<const void**> in_place;  // of each message that comes, or null
    size_t next = 0;                     // the current message
    size_t offset = 0;                   // bytes of its header and payload that are done
    uint32_t sequence = 0;
    FrameHeader header{};

    bool busy() const { return next < messages.size(); }
    void clear();
    void push(void* data, size_t bytes, const void** place = nullptr) {
      messages.push_back({data, bytes});
      in_place.push_back(place);
    }
    bool advance(size_t bytes);
  };

  /// Both directions of the connection to one peer.
  struct Connection {
    Stream* stream = nullptr;
    Lane out, in;
    std::unique_ptr<ShmLink> shm;
    bool polled = false;
    bool ended = false;  // the peer of `shm` closed the socket

    bool busy() const { return out.busy() || in.busy(); }
    /// Whether the peer has something to do for us.
    bool awaited() const { return busy() || (shm && shm->is_owed()); }
  };

  Status pump(Schedule* schedule);
  Status load_sends(Schedule* schedule, int round);
  Status load_receives(Schedule* schedule, int round);
  Result<bool> pump_all();
  Result<bool> pump_out(int peer);
  Result<bool> pump_in(int peer);
  Status check_header(int peer) const;
  static void wake_peer(const Connection& c);
  Result<size_t> transfer(int peer, Direction direction);
  Result<size_t> transfer_shared(Connection& c, Direction direction, std::span<iovec> parts);
  Status give_back();
  Result<bool> all_returned() const;
  void wait(int schedule_wake);
  void drain(Connection* c);
  std::string name(int peer) const;

  const int rank_;
  std::vector<PeerLink>& links_;
  const int wake_;
  const std::atomic<bool>& closed_;
  const std::function<void(int)> heard_;
  std::vector<Connection> connections_;
  std::vector<Send> sends_;  // of the current round
  std::vector<Receive> receives_;
  size_t sends_left_ = 0, receives_left_ = 0;  // messages of the current round
  std::vector<pollfd> polls_;
  Spinner spinner_;
  std::atomic<uint64_t> bytes_sent_{0};
};

}  // namespace cafetiere
