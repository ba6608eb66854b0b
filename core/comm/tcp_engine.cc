// SPDX-License-Identifier: Apache-2.0
#include "core/comm/tcp_engine.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include "core/comm/check_exchange.h"

namespace cafetiere {
namespace {

constexpr uint32_t kFrameMagic = 0x46544643;  // "CFTF"
constexpr size_t kStreamQuantum = 1 << 20;    // bytes moved before the other direction has a turn

}  // namespace

TcpEngine::TcpEngine(int rank, std::vector<PeerLink>& links, int wake,
                     const std::atomic<bool>& closed, std::function<void(int)> heard)
    : rank_(rank),
      links_(links),
      wake_(wake),
      closed_(closed),
      heard_(std::move(heard)),
      connections_(links.size()) {
  for (size_t peer = 0; peer < links.size(); ++peer) {
    connections_[peer].stream = &links[peer].data;
  }
}

void TcpEngine::share(std::vector<std::unique_ptr<ShmLink>> links) {
  for (size_t peer = 0; peer < links.size(); ++peer) {
    connections_[peer].shm = std::move(links[peer]);
  }
}

void TcpEngine::lend(const std::shared_ptr<const SharedMemory>& memory) {
  for (Connection& c : connections_) {
    if (c.shm) c.shm->lend(memory);
  }
}

Status TcpEngine::run(Schedule* schedule) {
  Status status = pump(schedule);
  for (Connection& c : connections_) {
    if (!status.ok() && c.shm) c.shm->give_up();  // the caller's memory is its own again
  }
  return status;
}

Status TcpEngine::pump(Schedule* schedule) {
  const int rounds = schedule->rounds();
  int begun = 0, received = 0;  // rounds
  bool receiving = false;       // round `received`
  while (true) {
    if (closed_.load(std::memory_order_acquire)) return {ErrorCode::kCancelled, "group closed"};
    CFT_ASSIGN(bool moved, pump_all());
    if (receiving && receives_left_ == 0) {
      schedule->received(received++);
      CFT_TRY(give_back());
      receiving = false;
      moved = true;
    }
    bool starved = false;
    if (begun < rounds && sends_left_ == 0) {
      CFT_ASSIGN(const bool ready, schedule->ready(begun));
      starved = !ready;
      if (ready) CFT_TRY(load_sends(schedule, begun++));
      moved |= ready;
    }
    if (!receiving && received < begun) {
      CFT_TRY(load_receives(schedule, received));
      receiving = moved = true;
    }
    if (received == rounds && sends_left_ == 0) {
      CFT_ASSIGN(const bool all, all_returned());
      if (all) return {};
    }
    if (moved) {
      spinner_.hit();
    } else if (!spinner_.again()) {
      wait(starved ? schedule->wake_fd() : -1);
      spinner_.slept();
    }
  }
}

Status TcpEngine::load_sends(Schedule* schedule, int round) {
  sends_.clear();
  schedule->sends(round, &sends_);
  CFT_TRY(check_exchange(rank_, static_cast<int>(links_.size()), sends_, {}));
  for (Connection& c : connections_) c.out.clear();
  for (const Send& s : sends_) {
    connections_[s.peer].out.push(const_cast<void*>(s.data), s.bytes);
  }
  sends_left_ = sends_.size();
  return {};
}

Status TcpEngine::load_receives(Schedule* schedule, int round) {
  receives_.clear();
  schedule->receives(round, &receives_);
  CFT_TRY(check_exchange(rank_, static_cast<int>(links_.size()), {}, receives_));
  for (Connection& c : connections_) c.in.clear();
  for (const Receive& r : receives_) connections_[r.peer].in.push(r.data, r.bytes, r.in_place);
  receives_left_ = receives_.size();
  return {};
}

/// Moves what can be moved now; whether anything was.
Result<bool> TcpEngine::pump_all() {
  bool moved = false;
  for (size_t peer = 0; peer < connections_.size(); ++peer) {
    if (connections_[peer].out.busy()) {
      CFT_ASSIGN(const bool sent, pump_out(static_cast<int>(peer)));
      moved |= sent;
    }
    if (connections_[peer].in.busy()) {
      CFT_ASSIGN(const bool received, pump_in(static_cast<int>(peer)));
      moved |= received;
    }
  }
  return moved;
}

Result<bool> TcpEngine::pump_out(int peer) {
  Lane& lane = connections_[peer].out;
  if (lane.offset == 0) {
    lane.header = {kFrameMagic, lane.sequence, lane.messages[lane.next].iov_len};
  }
  CFT_ASSIGN(const size_t n, transfer(peer, Direction::kOut));
  if (n == 0) return false;
  bytes_sent_.fetch_add(n, std::memory_order_relaxed);
  if (lane.advance(n)) --sends_left_;
  return true;
}

Result<bool> TcpEngine::pump_in(int peer) {
  Lane& lane = connections_[peer].in;
  CFT_ASSIGN(const size_t n, transfer(peer, Direction::kIn));
  if (n == 0) return false;
  heard_(peer);
  const bool had_header = lane.offset >= sizeof lane.header;
  if (!had_header && lane.offset + n >= sizeof lane.header) CFT_TRY(check_header(peer));
  if (lane.advance(n)) --receives_left_;
  return true;
}

/// Moves bytes of the current message between its memory and the peer's transport: how many, 0 when
/// none can be moved now.
Result<size_t> TcpEngine::transfer(int peer, Direction direction) {
  Connection& c = connections_[peer];
  const bool out = direction == Direction::kOut;
  Lane& lane = out ? c.out : c.in;
  iovec both[2];
  const auto parts =
      rest_of_message(std::as_writable_bytes(std::span(&lane.header, 1)), lane.messages[lane.next],
                      lane.offset, c.shm ? SIZE_MAX : kStreamQuantum, both);
  if (c.shm) {
    CFT_ASSIGN(const size_t n, transfer_shared(c, direction, parts));
    if (n == 0 && c.ended) return connection_lost(name(peer), 0);
    wake_peer(c);
    return n;
  }
  const ssize_t n = out ? c.stream->send(parts) : c.stream->receive(parts);
  if (n < 0 && would_block()) return size_t{0};
  if (n <= 0) return connection_lost(name(peer), n);
  return static_cast<size_t>(n);
}

Result<size_t> TcpEngine::transfer_shared(Connection& c, Direction direction,
                                          std::span<iovec> parts) {
  if (direction == Direction::kOut) return c.shm->write(parts);
  const Lane& lane = c.in;
  const void** const place = lane.in_place[lane.next];
  // The peer sends nothing more before it has back what it lent: only the round's last message.
  const bool is_last = lane.next + 1 == lane.messages.size();
  if (place && is_last && lane.offset == sizeof lane.header) {
    CFT_ASSIGN(const std::byte* lies, c.shm->borrow(lane.messages[lane.next].iov_len));
    if (lies) {
      *place = lies;
      return lane.messages[lane.next].iov_len;
    }
  }
  return c.shm->read(parts);
}

/// What was borrowed for a round that is over.
Status TcpEngine::give_back() {
  for (Connection& c : connections_) {
    if (!c.shm || !c.shm->borrowed()) continue;
    CFT_TRY(c.shm->give_back());
    wake_peer(c);
  }
  return {};
}

/// Whether the peers have read what they were lent: the caller may change it then.
Result<bool> TcpEngine::all_returned() const {
  for (const Connection& c : connections_) {
    if (!c.shm) continue;
    CFT_ASSIGN(const bool all, c.shm->all_returned());
    if (!all && c.ended) return connection_lost(name(int(&c - connections_.data())), 0);
    if (!all) return false;
  }
  return true;
}

/// A byte on the socket ends the peer's poll(). One that does not fit is one among many there.
void TcpEngine::wake_peer(const Connection& c) {
  if (c.shm->must_wake_peer()) (void)!send(c.stream->fd(), "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

Status TcpEngine::check_header(int peer) const {
  const Lane& lane = connections_[peer].in;
  const uint64_t expected = lane.messages[lane.next].iov_len;
  const FrameHeader& h = lane.header;
  if (h.magic != kFrameMagic || h.sequence != lane.sequence) {
    return internal_error(name(peer) + " sent bytes that are no message of this group");
  }
  if (h.bytes != expected) {
    return internal_error(fmt::format(
        "rank {} sends {} bytes where rank {} expects {}: the ranks run different programs or "
        "settings",
        peer, h.bytes, rank_, expected));
  }
  return {};
}

void TcpEngine::Lane::clear() {
  messages.clear();
  in_place.clear();
  next = offset = 0;
}

/// Counts bytes as done; true when they end a message.
bool TcpEngine::Lane::advance(size_t bytes) {
  offset += bytes;
  if (offset < sizeof header + messages[next].iov_len) return false;
  offset = 0;
  ++next;
  ++sequence;
  return true;
}

/// Sleeps until a socket is ready, `schedule_wake` is readable (-1: none) or the group is closed. The
/// monitor guarantees that one of them happens, so no time-out is needed here.
void TcpEngine::wait(int schedule_wake) {
  polls_.assign({{wake_, POLLIN, 0}, {schedule_wake, POLLIN, 0}});
  bool sleep = true;
  for (Connection& c : connections_) {
    c.polled = c.awaited();
    if (!c.polled) {
      sleep &= !(c.shm && c.shm->news());  // it may just have returned all
      continue;
    }
    int events = (c.out.busy() ? POLLOUT : 0) | (c.in.busy() ? POLLIN : 0);
    if (c.shm) {
      sleep &= c.shm->may_sleep(c.out.busy(), c.in.busy());
      events = POLLIN;
    }
    polls_.push_back({c.stream->fd(), static_cast<short>(events), 0});
  }
  if (sleep) poll(polls_.data(), polls_.size(), -1);
  for (Connection& c : connections_) {
    if (c.shm && c.polled) drain(&c);
  }
}

/// Takes the bytes that woke us from the socket and sees whether it is still open. What the peer
/// wrote before it closed it is in the memory by then.
void TcpEngine::drain(Connection* c) {
  c->shm->woke();
  char bytes[64];
  const ssize_t n = recv(c->stream->fd(), bytes, sizeof bytes, MSG_DONTWAIT);
  c->ended = n == 0 || (n < 0 && !would_block());
}

std::string TcpEngine::name(int peer) const {
  return fmt::format("rank {} at {}", peer, links_[peer].address);
}

}  // namespace cafetiere
