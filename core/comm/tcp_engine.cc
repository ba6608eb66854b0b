#include "core/comm/tcp_engine.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cafetiere {
namespace {

constexpr uint32_t kFrameMagic = 0x46544643;  // "CFTF"
constexpr size_t kQuantum = 1 << 20;          // bytes moved before the other direction has a turn

/// Fills `parts` with what is left of a header and its payload, at most a quantum of payload;
/// returns how many parts that makes.
size_t remaining(std::span<std::byte> header, const iovec& payload, size_t offset,
                 std::span<iovec, 2> parts) {
  size_t n = 0;
  if (offset < header.size()) parts[n++] = {&header[offset], header.size() - offset};
  const size_t done = offset - std::min(offset, header.size());
  const size_t rest = std::min(payload.iov_len - done, kQuantum);
  if (rest > 0) parts[n++] = {static_cast<char*>(payload.iov_base) + done, rest};
  return n;
}

}  // namespace

TcpEngine::TcpEngine(int rank, const std::vector<Link>& links, int wake,
                     const std::atomic<bool>& closed, std::function<void(int)> heard)
    : rank_(rank),
      links_(links),
      wake_(wake),
      closed_(closed),
      heard_(std::move(heard)),
      wires_(links.size()) {
  for (size_t peer = 0; peer < links.size(); ++peer) wires_[peer].fd = links[peer].data.get();
}

Status TcpEngine::run(std::span<const Send> sends, std::span<const Receive> receives) {
  load(sends, receives);
  while (true) {
    if (closed_.load(std::memory_order_acquire)) return {ErrorCode::kCancelled, "group closed"};
    bool moved = false;
    for (int peer : active_) {
      CFT_ASSIGN(const bool peer_moved, pump(peer));
      moved |= peer_moved;
    }
    std::erase_if(active_,
                  [&](int peer) { return !wires_[peer].out.busy() && !wires_[peer].in.busy(); });
    if (active_.empty()) return {};
    // No spinning: on cores that are busy computing it makes every size slower.
    if (!moved) wait();
  }
}

void TcpEngine::load(std::span<const Send> sends, std::span<const Receive> receives) {
  for (Wire& wire : wires_) {
    for (Lane* lane : {&wire.out, &wire.in}) {
      lane->messages.clear();
      lane->next = lane->offset = 0;
    }
  }
  for (const Send& s : sends) {
    wires_[s.peer].out.messages.push_back({const_cast<void*>(s.data), s.bytes});
  }
  for (const Receive& r : receives) wires_[r.peer].in.messages.push_back({r.data, r.bytes});
  active_.clear();
  for (size_t peer = 0; peer < wires_.size(); ++peer) {
    if (wires_[peer].out.busy() || wires_[peer].in.busy())
      active_.push_back(static_cast<int>(peer));
  }
}

Result<bool> TcpEngine::pump(int peer) {
  CFT_ASSIGN(const bool sent, pump_out(peer));
  CFT_ASSIGN(const bool received, pump_in(peer));
  return sent || received;
}

Result<bool> TcpEngine::pump_out(int peer) {
  Lane& lane = wires_[peer].out;
  if (!lane.busy()) return false;
  const iovec& message = lane.messages[lane.next];
  if (lane.offset == 0) lane.header = {kFrameMagic, lane.sequence, message.iov_len};
  iovec parts[2];
  msghdr envelope{};
  envelope.msg_iov = parts;
  envelope.msg_iovlen =
      remaining(std::as_writable_bytes(std::span(&lane.header, 1)), message, lane.offset, parts);
  const ssize_t n = sendmsg(wires_[peer].fd, &envelope, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return false;
    return broken(peer, n);
  }
  bytes_sent_.fetch_add(static_cast<uint64_t>(n), std::memory_order_relaxed);
  advance(&lane, static_cast<size_t>(n));
  return true;
}

Result<bool> TcpEngine::pump_in(int peer) {
  Lane& lane = wires_[peer].in;
  if (!lane.busy()) return false;
  iovec parts[2];
  msghdr envelope{};
  envelope.msg_iov = parts;
  envelope.msg_iovlen = remaining(std::as_writable_bytes(std::span(&lane.header, 1)),
                                  lane.messages[lane.next], lane.offset, parts);
  const ssize_t n = recvmsg(wires_[peer].fd, &envelope, MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return false;
  if (n <= 0) return broken(peer, n);
  heard_(peer);
  const bool had_header = lane.offset >= sizeof lane.header;
  if (!had_header && lane.offset + static_cast<size_t>(n) >= sizeof lane.header) {
    CFT_TRY(check_header(peer));
  }
  advance(&lane, static_cast<size_t>(n));
  return true;
}

Status TcpEngine::check_header(int peer) const {
  const Lane& lane = wires_[peer].in;
  const uint64_t expected = lane.messages[lane.next].iov_len;
  const FrameHeader& h = lane.header;
  if (h.magic != kFrameMagic || h.sequence != lane.sequence) {
    return internal_error(fmt::format("rank {} at {} sent bytes that are no message of this group",
                                      peer, links_[peer].address));
  }
  if (h.bytes != expected) {
    return internal_error(fmt::format(
        "rank {} sends {} bytes where rank {} expects {}: the ranks run different programs or "
        "settings",
        peer, h.bytes, rank_, expected));
  }
  return {};
}

void TcpEngine::advance(Lane* lane, size_t bytes) {
  lane->offset += bytes;
  if (lane->offset < sizeof lane->header + lane->messages[lane->next].iov_len) return;
  lane->offset = 0;
  ++lane->next;
  ++lane->sequence;
}

/// Sleeps until a socket is ready or the group is closed. The monitor guarantees that one of the
/// two happens, so no time-out is needed here.
void TcpEngine::wait() {
  polls_.assign({{wake_, POLLIN, 0}});
  for (int peer : active_) {
    const Wire& wire = wires_[peer];
    const int events = (wire.out.busy() ? POLLOUT : 0) | (wire.in.busy() ? POLLIN : 0);
    polls_.push_back({wire.fd, static_cast<short>(events), 0});
  }
  poll(polls_.data(), polls_.size(), -1);
}

Status TcpEngine::broken(int peer, ssize_t result) const {
  const std::string who = fmt::format("rank {} at {}", peer, links_[peer].address);
  if (result == 0) return unavailable(who + " closed its connection");
  if (errno == ETIMEDOUT) return timeout_error(who + " cannot be reached any more");
  return unavailable(fmt::format("lost {}: {}", who, errno_text(errno)));
}

}  // namespace cafetiere
