// SPDX-License-Identifier: Apache-2.0
// Stream: the bytes between two ranks, plain or encrypted.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "core/base/status.h"
#include "core/comm/socket.h"
#include "core/comm/tls_session.h"

namespace cafetiere {

/// Owns a non-blocking connection. Used by one thread at a time.
class Stream {
 public:
  Stream() = default;
  /// Plain, or encrypted with `tls`, whose handshake must be complete.
  explicit Stream(Fd fd, std::unique_ptr<TlsSession> tls = nullptr);

  bool valid() const { return fd_.valid(); }
  bool encrypted() const { return tls_ != nullptr; }
  /// For poll(), socket options and shutdown().
  int fd() const { return fd_.get(); }

  /// Like sendmsg(): returns the number of bytes sent, or -1. After a short count or -1 with
  /// EAGAIN, the caller must continue with the same bytes: some may be buffered in encrypted form.
  ssize_t send(std::span<const iovec> parts);
  ssize_t send(std::span<const std::byte> bytes);

  /// Like recvmsg(): returns the number of bytes received, 0 at the end of the stream, or -1;
  /// EBADMSG if they were not sent by the peer. Read until EAGAIN before polling.
  ssize_t receive(std::span<const iovec> parts);
  ssize_t receive(std::span<std::byte> bytes);

 private:
  Fd fd_;
  std::unique_ptr<TlsSession> tls_;
};

/// The error of a connection whose send() or receive() returned `result`, which is neither progress
/// nor EAGAIN. The message starts with `who`.
Status connection_lost(const std::string& who, ssize_t result);

/// Sets `parts` to the rest of a header and its body after `offset` bytes, with at most `limit`
/// bytes of the body; returns the non-empty parts.
std::span<iovec> rest_of_message(std::span<std::byte> header, const iovec& body, size_t offset,
                                 size_t limit, std::span<iovec, 2> parts);

}  // namespace cafetiere
