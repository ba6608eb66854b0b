// SPDX-License-Identifier: Apache-2.0
#include "core/comm/messenger.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/base/guard.h"

namespace cafetiere {
namespace {

using namespace std::chrono_literals;

constexpr uint32_t kMessageMagic = 0x4d544643;  // "CFTM"
constexpr size_t kQuantum = 1 << 20;            // bytes moved before another connection gets a turn
constexpr std::chrono::milliseconds kMaxBeatInterval = 1s;
// How long a leaving rank waits for the peers to close, so that they can read its final message.
constexpr auto kGoodbyeTimeout = 1s;

enum MessageKind : uint32_t { kRequest = 1, kReply = 2, kMessageBeat = 3, kMessageBye = 4 };

}  // namespace

/// The connection to one peer and its pending messages.
struct Messenger::Peer {
  struct Header {
    uint32_t magic = kMessageMagic;
    uint32_t kind = kMessageBeat;
    uint32_t topic = 0, index = 0;
    uint64_t bytes = 0;  // of the body that follows
  };

  struct Outgoing {
    Header header;
    std::span<const std::byte> body;
    Bytes owned;  // the body of a reply
  };

  int rank = -1;
  Stream stream;
  Clock::time_point heard;

  std::deque<Outgoing> out;  // at most one request, one reply, and a heartbeat or a goodbye
  size_t sent = 0;           // of out.front()

  Header header;
  size_t received = 0;  // of the header and the body
  std::span<std::byte> body;
  Bytes question;  // the body of a request; the buffer is reused

  std::deque<Request*> asked;  // the first one has been sent
  bool answering = false;      // a reply is queued in `out`

  std::string name() const { return fmt::format("rank {}", rank); }
};

Result<std::unique_ptr<Messenger>> Messenger::open(Group* group, size_t max_request,
                                                   Events events) {
  CFT_ASSIGN(PeerLinks links, group->open_links());
  std::unique_ptr<Messenger> messenger(
      new Messenger(group, std::move(links), max_request, std::move(events)));
  if (!messenger->wake_.valid()) {
    return io_error("messenger: cannot make an eventfd: " + errno_text(errno));
  }
  CFT_TRY(messenger->thread_.start(
      "messages between ranks", [raw = messenger.get()] { raw->loop(); },
      [raw = messenger.get()](const Status& why) { raw->fail(why); }));
  return messenger;
}

Messenger::Messenger(Group* group, PeerLinks links, size_t max_request, Events events)
    : cancelled_(links.cancelled),
      timeout_(links.timeout_ms),
      interval_(links.timeout_ms > 0 ? std::min(timeout_ / 6, kMaxBeatInterval) : kMaxBeatInterval),
      max_request_(max_request),
      events_(std::move(events)),
      peers_(size_t(group->size())),
      last_beat_(Clock::now()),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      alive_(peers_.size(), true) {
  for (int rank = 0; rank < group->size(); ++rank) {
    if (rank == group->rank()) continue;
    peers_[size_t(rank)] = std::make_unique<Peer>();
    peers_[size_t(rank)]->rank = rank;
    peers_[size_t(rank)]->stream = std::move(links.streams[size_t(rank)]);
    peers_[size_t(rank)]->heard = last_beat_;
  }
}

Messenger::~Messenger() {
  stop_.store(true);
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

Status Messenger::ask(std::span<Request> requests) {
  std::unique_lock lock(mutex_);
  if (!closed_.ok()) return closed_;
  for (Request& request : requests) {
    request.status = {};
    posted_.push_back(&request);
  }
  open_ = requests.size();
  eventfd_write(wake_.get(), 1);
  answered_.wait(lock, [&] { return open_ == 0 || dead_; });
  for (Request& request : requests) {
    if (dead_ && request.status.ok()) request.status = closed_;
  }
  return closed_;
}

Status Messenger::status() const {
  std::lock_guard lock(mutex_);
  return closed_;
}

bool Messenger::alive(int peer) const {
  std::lock_guard lock(mutex_);
  return alive_[size_t(peer)];
}

void Messenger::loop() {
  while (status().ok()) {
    take_posted();
    if (stop_.load()) leave();
    if (leaving_ && (gone() || Clock::now() >= leave_by_)) return;
    // The end of the measured silence, taken before reading: if this process itself was delayed,
    // the peers' heartbeats are waiting in the sockets.
    const auto now = Clock::now();
    const bool moved = pump_all();
    keep_time(now);
    wait(moved ? 0ms : time_left());
  }
}

void Messenger::take_posted() {
  std::vector<Request*> posted;
  {
    std::lock_guard lock(mutex_);
    posted.swap(posted_);
  }
  for (Request* request : posted) {
    Peer* peer = peers_[size_t(request->peer)].get();
    if (!peer || !peer->stream.valid()) {
      finish(request, unavailable(fmt::format("rank {} is lost", request->peer)));
      continue;
    }
    peer->asked.push_back(request);
    if (peer->asked.size() == 1) start_next(peer);
  }
}

/// Sends a goodbye once nothing else is to be sent; then only waits for the peers to close.
void Messenger::leave() {
  if (leaving_) return;
  for (const auto& peer : peers_) {
    if (peer && peer->stream.valid() && !peer->out.empty()) return;
  }
  leaving_ = true;
  leave_by_ = Clock::now() + kGoodbyeTimeout;
  for (const auto& peer : peers_) {
    if (peer && peer->stream.valid()) peer->out.push_back({{.kind = kMessageBye}, {}, {}});
  }
}

bool Messenger::gone() const {
  return std::ranges::none_of(peers_, [](const auto& p) { return p && p->stream.valid(); });
}

void Messenger::start_next(Peer* peer) {
  if (peer->asked.empty()) return;
  const Request& r = *peer->asked.front();
  peer->out.push_back(
      {{.kind = kRequest, .topic = r.topic, .index = r.index, .bytes = r.data.size()}, r.data, {}});
}

/// Gives each connection a turn; returns whether anything moved.
bool Messenger::pump_all() {
  bool any = false;
  for (const auto& peer : peers_) {
    if (!peer || !peer->stream.valid()) continue;
    auto moved = pump_out(peer.get());
    any |= moved.ok() && *moved;
    if (moved.ok()) moved = pump_in(peer.get());
    if (!moved.ok()) {
      if (was_stalled()) return true;
      lose(peer.get(), moved.status());
    }
    any |= !moved.ok() || *moved;
  }
  return any;
}

Result<bool> Messenger::pump_out(Peer* peer) {
  size_t moved = 0;
  while (!peer->out.empty() && moved < kQuantum) {
    Peer::Outgoing& front = peer->out.front();
    const iovec body{const_cast<std::byte*>(front.body.data()), front.body.size()};
    iovec both[2];
    const ssize_t n = peer->stream.send(rest_of_message(
        std::as_writable_bytes(std::span(&front.header, 1)), body, peer->sent, kQuantum, both));
    if (n < 0 && would_block()) break;
    // What the peer wrote before it closed must still be read: it may be a goodbye.
    if (n < 0 && (errno == EPIPE || errno == ECONNRESET)) break;
    if (n < 0) return connection_lost(peer->name(), n);
    moved += size_t(n);
    peer->sent += size_t(n);
    if (peer->sent < sizeof front.header + front.body.size()) continue;
    if (front.header.kind == kReply) {
      peer->question = std::move(peer->out.front().owned);
      peer->answering = false;
    }
    peer->out.pop_front();
    peer->sent = 0;
  }
  return moved > 0;
}

Result<bool> Messenger::pump_in(Peer* peer) {
  size_t moved = 0;
  while (moved < kQuantum) {
    const bool in_header = peer->received < sizeof peer->header;
    const auto rest =
        in_header ? std::as_writable_bytes(std::span(&peer->header, 1)).subspan(peer->received)
                  : peer->body.subspan(peer->received - sizeof peer->header);
    const ssize_t n = peer->stream.receive(rest.first(std::min(rest.size(), kQuantum)));
    if (n < 0 && would_block()) break;
    if (n <= 0) return connection_lost(peer->name(), n);
    moved += size_t(n);
    peer->received += size_t(n);
    peer->heard = Clock::now();
    if (peer->received == sizeof peer->header) CFT_TRY(begin_body(peer));
    if (peer->received < sizeof peer->header + peer->header.bytes) continue;
    CFT_TRY(deliver(peer));
    peer->received = 0;
  }
  return moved > 0;
}

/// Checks a complete header and prepares the buffer for the body.
Status Messenger::begin_body(Peer* peer) {
  const Peer::Header& h = peer->header;
  peer->body = {};
  if (h.magic != kMessageMagic || h.kind < kRequest || h.kind > kMessageBye) {
    return internal_error(peer->name() + " sent bytes that are not a message of this group");
  }
  if (h.kind == kRequest) {
    if (peer->answering) {
      return internal_error(peer->name() + " sent a request before it took the last reply");
    }
    if (h.bytes > max_request_) {
      return internal_error(fmt::format("{} sent a request of {} bytes; at most {} are allowed",
                                        peer->name(), h.bytes, max_request_));
    }
    peer->question.resize(h.bytes);
    peer->body = peer->question;
    return {};
  }
  // A reply before the whole request was sent cannot answer it, and the request's bytes are still
  // in use.
  const auto asks = [](const Peer::Outgoing& o) { return o.header.kind == kRequest; };
  const bool expected =
      h.kind != kReply || (!peer->asked.empty() && std::ranges::none_of(peer->out, asks));
  if (expected && h.kind == kReply) peer->body = peer->asked.front()->reply;
  if (!expected || h.bytes != peer->body.size()) {
    return internal_error(
        fmt::format("{} sends {} bytes where {} are expected: the ranks run different programs or "
                    "settings",
                    peer->name(), h.bytes, peer->body.size()));
  }
  return {};
}

Status Messenger::deliver(Peer* peer) {
  const Peer::Header h = peer->header;
  if (h.kind == kMessageBye) return unavailable(peer->name() + " has left");
  if (h.kind == kReply) {
    Request* request = peer->asked.front();
    peer->asked.pop_front();
    start_next(peer);
    finish(request, {});
  }
  if (h.kind == kRequest && !leaving_) {
    CFT_ASSIGN(Bytes reply,
               events_.answer(peer->rank, h.topic, h.index, std::move(peer->question)));
    peer->answering = true;
    peer->out.push_back({{.kind = kReply, .bytes = reply.size()}, {}, std::move(reply)});
    peer->out.back().body = peer->out.back().owned;
  }
  return {};
}

/// Whether this process was stalled for longer than the time-out, so that the peers have given up
/// on it: that they closed does not mean that they are lost. If so, ends the messenger.
bool Messenger::was_stalled() {
  const auto since = Clock::now() - last_beat_;
  if (timeout_.count() == 0 || since < timeout_) return false;
  close(
      unavailable(fmt::format("this rank was stalled for {:.1f} s, so the other ranks consider it "
                              "lost: its process was stopped, or its machine is short of memory",
                              std::chrono::duration<double>(since).count())));
  return true;
}

/// Checks the silence of the peers up to `now`, and sends heartbeats.
void Messenger::keep_time(Clock::time_point now) {
  if (timeout_.count() == 0 || was_stalled()) return;
  for (const auto& peer : peers_) {
    if (!peer || !peer->stream.valid() || now - peer->heard < timeout_) continue;
    lose(peer.get(),
         timeout_error(fmt::format(
             "{} has been silent for {:.1f} s: it is stopped, swapped out or disconnected",
             peer->name(), std::chrono::duration<double>(now - peer->heard).count())));
  }
  if (now - last_beat_ < interval_) return;
  last_beat_ = now;
  for (const auto& peer : peers_) {
    const bool idle = peer && peer->stream.valid() && peer->out.empty();
    if (idle && !leaving_) peer->out.push_back({{.kind = kMessageBeat}, {}, {}});
  }
}

/// Time until the next heartbeat, a peer's time-out, or the end of this rank's grace period if it
/// leaves; < 0: no limit.
std::chrono::milliseconds Messenger::time_left() const {
  if (timeout_.count() == 0 && !leaving_) return -1ms;
  auto next = timeout_.count() > 0 ? last_beat_ + interval_ : leave_by_;
  if (leaving_) next = std::min(next, leave_by_);
  for (const auto& peer : peers_) {
    const bool judged = timeout_.count() > 0 && peer && peer->stream.valid();
    if (judged) next = std::min(next, peer->heard + timeout_);
  }
  return std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()));
}

void Messenger::wait(std::chrono::milliseconds limit) {
  std::vector<pollfd> polls{{wake_.get(), POLLIN, 0}, {cancelled_, POLLIN, 0}};
  for (const auto& peer : peers_) {
    if (!peer || !peer->stream.valid()) continue;
    const int events = POLLIN | (peer->out.empty() ? 0 : POLLOUT);
    polls.push_back({peer->stream.fd(), short(events), 0});
  }
  poll(polls.data(), polls.size(), int(limit.count()));
  eventfd_t count;
  eventfd_read(wake_.get(), &count);
  if (polls[1].revents != 0) close({ErrorCode::kCancelled, "the group was cancelled"});
}

void Messenger::finish(Request* request, Status status) {
  std::lock_guard lock(mutex_);
  request->status = std::move(status);
  if (--open_ == 0) answered_.notify_all();
}

void Messenger::lose(Peer* peer, Status why) {
  peer->stream = Stream();
  peer->out.clear();
  {
    std::lock_guard lock(mutex_);
    alive_[size_t(peer->rank)] = false;
  }
  for (Request* request : std::exchange(peer->asked, {})) finish(request, why);
  if (!leaving_) events_.lost(peer->rank, why);
}

/// Ends this messenger, but not those of the others.
void Messenger::close(Status why) {
  {
    std::lock_guard lock(mutex_);
    closed_ = why;
  }
  take_posted();
  for (const auto& peer : peers_) {
    if (peer && peer->stream.valid()) lose(peer.get(), why);
  }
}

/// The thread has failed with `why` and ends: the peers see that this rank is gone.
void Messenger::fail(const Status& why) {
  {
    std::lock_guard lock(mutex_);
    closed_ = why;
    dead_ = true;
    posted_.clear();
    alive_.assign(alive_.size(), false);
  }
  answered_.notify_all();
  for (const auto& peer : peers_) {
    if (!peer || !peer->stream.valid()) continue;
    peer->stream = Stream();
    if (!leaving_) (void)guard([&] { events_.lost(peer->rank, why); });  // for those who wait
  }
}

}  // namespace cafetiere
