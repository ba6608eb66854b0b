// SPDX-License-Identifier: Apache-2.0
#include "core/comm/local_endpoint.h"

#include <fmt/format.h>
#include <sys/eventfd.h>

#include <cstring>
#include <utility>

namespace cafetiere {

LocalMember::LocalMember() : wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

// A sleeper sets its flag and then checks for work again; a rank that changes something does so and
// then checks the flag. All of it is sequentially consistent, so no wake-up is lost.

void LocalMember::notify() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (asleep_.load() && asleep_.exchange(false)) wake();
}

void LocalMember::wake() { eventfd_write(wake_.get(), 1); }

void LocalMember::arm() {
  armed_ = true;
  asleep_.store(true);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void LocalMember::disarm() {
  if (!std::exchange(armed_, false)) return;
  asleep_.store(false);
  eventfd_t count;
  eventfd_read(wake_.get(), &count);
}

void LocalEndpoint::send(const void* data, size_t bytes) {
  {
    std::lock_guard lock(ends_.out->mutex);
    ends_.out->posted.push_back({const_cast<void*>(data), bytes});
  }
  ++posted_;
  news_ += bytes;
  ends_.peer->notify();
}

void LocalEndpoint::receive(void* data, size_t bytes, const void** /*in_place*/) {
  expected_.push_back({data, bytes});
}

Result<Endpoint::Progress> LocalEndpoint::progress() {
  const bool left = ends_.peer->left.load();  // read before the peer's messages
  Progress moved{.sent = std::exchange(news_, 0), .received = 0};
  if (receiving()) {
    CFT_ASSIGN(moved.received, take());
  }
  seen_taken_ = taken();
  if (left && moved.received == 0 && (receiving() || sending())) {
    return unavailable(
        fmt::format("rank {} left the group while rank {} still needs it", name_.peer, name_.self));
  }
  return moved;
}

/// Copies the peer's next message, if any; returns its size.
Result<size_t> LocalEndpoint::take() {
  const iovec room = expected_.front();
  {
    LocalLane& lane = *ends_.in;
    std::lock_guard lock(lane.mutex);
    if (lane.posted.empty()) return size_t{0};
    const iovec message = lane.posted.front();
    if (message.iov_len != room.iov_len) return wrong_size(name_, message.iov_len, room.iov_len);
    if (room.iov_len > 0) std::memcpy(room.iov_base, message.iov_base, room.iov_len);
    lane.posted.pop_front();
    lane.taken.fetch_add(1, std::memory_order_release);
  }
  expected_.pop_front();
  ends_.peer->notify();
  return room.iov_len;
}

bool LocalEndpoint::arm(std::vector<pollfd>* polls) {
  if (seen_taken_ == posted_ && !receiving()) return true;
  polls->push_back({ends_.self->fd(), POLLIN, 0});
  ends_.self->arm();
  if (ends_.peer->left.load() || taken() != seen_taken_) return false;
  std::lock_guard lock(ends_.in->mutex);
  return !receiving() || ends_.in->posted.empty();
}

/// Takes the lock, so that no message is being copied.
void LocalEndpoint::give_up() {
  std::lock_guard lock(ends_.out->mutex);
  ends_.out->posted.clear();
}

}  // namespace cafetiere
