// SPDX-License-Identifier: Apache-2.0
// TlsSession: TLS 1.3 (RFC 8446) between two ranks with a shared key, on the caller's socket.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/status.h"

struct bio_st;
struct ssl_st;
struct ssl_session_st;

namespace cafetiere {

/// One end of an encrypted connection, using OpenSSL's libssl. The shared key authenticates, and an
/// ephemeral key exchange (psk_dhe_ke) provides the traffic keys (forward secrecy); there are no
/// certificates. The only suite is TLS_AES_128_GCM_SHA256. Used by one thread at a time, with a
/// non-blocking stream socket.
class TlsSession {
 public:
  using Key = std::array<uint8_t, 32>;
  enum class Role { kClient, kServer };

  /// Number of records after which the sender's key is replaced: AES-GCM with one key is safe for
  /// 2^24.5 full records (RFC 8446, 5.5), which a few hours of gradients reach.
  static constexpr uint64_t kRecordsPerKey = uint64_t{1} << 24;

  static Result<std::unique_ptr<TlsSession>> create(Role role, const Key& key,
                                                    uint64_t records_per_key = kRecordsPerKey);
  ~TlsSession();

  /// Advances the handshake as far as the socket allows; true when it is complete. An error: the
  /// peer has another key, or bytes were modified in transit.
  Result<bool> handshake(int fd);
  /// What to poll for before the next handshake(): POLLIN or POLLOUT.
  short events() const;

  /// Like sendmsg(), non-blocking, for at least one byte. Bytes count as sent once all of their
  /// encrypted form has been sent; until then (-1 with EAGAIN) the caller must pass the same bytes
  /// again.
  ssize_t send(int fd, std::span<const iovec> parts);
  /// Like recvmsg(), non-blocking. EBADMSG: the bytes received are not what the peer sent.
  ssize_t receive(int fd, std::span<const iovec> parts);

 private:
  struct Free {
    void operator()(ssl_st* ssl) const;
    void operator()(ssl_session_st* session) const;
    void operator()(bio_st* bio) const;
  };

  TlsSession() = default;
  Status prepare(Role role, const Key& key);
  bool flush(int fd);
  ssize_t fill(int fd);
  bool has_room() const;
  ssize_t seal(std::span<const iovec> parts);
  static ssize_t spoilt();

  // libssl on one side of a buffer pair, the socket's bytes on the other: one system call carries
  // many records.
  std::unique_ptr<bio_st, Free> wire_;
  std::unique_ptr<ssl_session_st, Free> shared_;  // the key, in libssl's form
  std::unique_ptr<ssl_st, Free> ssl_;
  uint64_t records_per_key_ = kRecordsPerKey;
  uint64_t records_ = 0;       // sent with the current key
  bool corrupted_ = false;     // input was not authentic
  ssize_t pending_plain_ = 0;  // bytes of the caller that have been encrypted but not sent
};

}  // namespace cafetiere
