// SPDX-License-Identifier: Apache-2.0
#include "core/comm/shm_endpoint.h"

#include <sys/socket.h>

#include "core/comm/stream.h"

namespace cafetiere {

Result<size_t> ShmEndpoint::write(std::span<const iovec> parts) {
  CFT_ASSIGN(const size_t n, link_->write(parts));
  return moved(n);
}

Result<size_t> ShmEndpoint::read(std::span<const iovec> parts) {
  CFT_ASSIGN(const size_t n, link_->read(parts));
  return moved(n);
}

Result<const void*> ShmEndpoint::find_in_place(size_t bytes) {
  CFT_ASSIGN(const std::byte* lies, link_->borrow(bytes));
  return static_cast<const void*>(lies);
}

Result<size_t> ShmEndpoint::moved(size_t bytes) {
  if (bytes == 0 && ended_) return lost();
  wake_peer();
  return bytes;
}

Status ShmEndpoint::release() {
  if (!link_->borrowed()) return {};
  CFT_TRY(link_->give_back());
  wake_peer();
  return {};
}

Result<bool> ShmEndpoint::settled() {
  CFT_ASSIGN(const bool all, link_->all_returned());
  if (!all && ended_) return lost();
  return all;
}

bool ShmEndpoint::arm(std::vector<pollfd>* polls) {
  armed_ = sending() || receiving() || link_->has_loans_out();
  if (!armed_) return !link_->news();  // the peer may just have returned all loans
  polls->push_back({socket_, POLLIN, 0});
  return link_->may_sleep(sending(), receiving());
}

/// Reads the wake-up bytes from the socket and detects whether it is closed. Everything the peer
/// wrote before it closed the socket is then in the memory.
void ShmEndpoint::disarm() {
  if (!armed_) return;
  armed_ = false;
  link_->woke();
  char bytes[64];
  const ssize_t n = recv(socket_, bytes, sizeof bytes, MSG_DONTWAIT);
  ended_ = n == 0 || (n < 0 && !would_block());
}

/// A byte on the socket ends the peer's poll(). If the socket is full, it already contains such
/// bytes.
void ShmEndpoint::wake_peer() {
  if (link_->must_wake_peer()) (void)!::send(socket_, "", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

Status ShmEndpoint::lost() const { return connection_lost(name().text(), 0); }

}  // namespace cafetiere
