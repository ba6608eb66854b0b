// SPDX-License-Identifier: Apache-2.0
#include "core/comm/stream.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cafetiere {
namespace {

msghdr envelope_of(std::span<const iovec> parts) {
  msghdr envelope{};
  envelope.msg_iov = const_cast<iovec*>(parts.data());
  envelope.msg_iovlen = parts.size();
  return envelope;
}

}  // namespace

Stream::Stream(Fd fd, std::unique_ptr<TlsSession> tls) : fd_(std::move(fd)), tls_(std::move(tls)) {}

ssize_t Stream::send(std::span<const iovec> parts) {
  if (tls_) return tls_->send(fd(), parts);
  const msghdr envelope = envelope_of(parts);
  return sendmsg(fd(), &envelope, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t Stream::receive(std::span<const iovec> parts) {
  if (tls_) return tls_->receive(fd(), parts);
  msghdr envelope = envelope_of(parts);
  return recvmsg(fd(), &envelope, MSG_DONTWAIT);
}

ssize_t Stream::send(std::span<const std::byte> bytes) {
  const iovec part{const_cast<std::byte*>(bytes.data()), bytes.size()};
  return send({&part, 1});
}

ssize_t Stream::receive(std::span<std::byte> bytes) {
  const iovec part{bytes.data(), bytes.size()};
  return receive({&part, 1});
}

Status connection_lost(const std::string& who, ssize_t result) {
  const bool closed = result == 0 || errno == ECONNRESET || errno == EPIPE;
  if (closed) return unavailable(who + " is gone: it closed its connection");
  if (errno == ETIMEDOUT) return timeout_error(who + " cannot be reached any more");
  if (errno == EBADMSG) {
    return unavailable(who + " is disconnected: bytes were changed in transit");
  }
  return unavailable(fmt::format("lost {}: {}", who, errno_text(errno)));
}

std::span<iovec> rest_of_message(std::span<std::byte> header, const iovec& body, size_t offset,
                                 size_t limit, std::span<iovec, 2> parts) {
  size_t count = 0;
  if (offset < header.size()) parts[count++] = {&header[offset], header.size() - offset};
  const size_t done = offset - std::min(offset, header.size());
  const size_t rest = std::min(body.iov_len - done, limit);
  if (rest > 0) parts[count++] = {static_cast<std::byte*>(body.iov_base) + done, rest};
  return parts.first(count);
}

}  // namespace cafetiere
