// SPDX-License-Identifier: Apache-2.0
#include "core/comm/socket_endpoint.h"

namespace cafetiere {

Result<size_t> SocketEndpoint::write(std::span<const iovec> parts) {
  return moved(stream_->send(parts));
}

Result<size_t> SocketEndpoint::read(std::span<const iovec> parts) {
  return moved(stream_->receive(parts));
}

Result<size_t> SocketEndpoint::moved(ssize_t result) const {
  if (result < 0 && would_block()) return size_t{0};
  if (result <= 0) return connection_lost(name().text(), result);
  return static_cast<size_t>(result);
}

bool SocketEndpoint::arm(std::vector<pollfd>* polls) {
  const int events = (sending() ? POLLOUT : 0) | (receiving() ? POLLIN : 0);
  if (events != 0) polls->push_back({stream_->fd(), static_cast<short>(events), 0});
  return true;
}

}  // namespace cafetiere
