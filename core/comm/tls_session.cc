// SPDX-License-Identifier: Apache-2.0
#include "core/comm/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/comm/socket.h"

namespace cafetiere {
namespace {

constexpr size_t kRecord = SSL3_RT_MAX_PLAIN_LENGTH;
// More than the header and tag of a record and a preceding key update.
constexpr size_t kRecordOverhead = 256;
constexpr size_t kWireBuffer = 256 << 10;  // each direction
constexpr char kSuite[] = "TLS_AES_128_GCM_SHA256";
constexpr unsigned char kSuiteId[] = {0x13, 0x01};
constexpr unsigned char kKeyName[] = "cafetiere";

/// The text of libssl's last error on this thread; clears it.
std::string ssl_error_text() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return reason ? reason : "no reason given";
}

/// The session that contains the shared key; libssl takes a reference.
SSL_SESSION* shared_session(SSL* ssl) {
  auto* session = static_cast<SSL_SESSION*>(SSL_get_app_data(ssl));
  SSL_SESSION_up_ref(session);
  return session;
}

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** name, size_t* bytes,
              SSL_SESSION** session) {
  *name = kKeyName;
  *bytes = sizeof kKeyName;
  *session = shared_session(ssl);
  return 1;
}

int find_key(SSL* ssl, const unsigned char* name, size_t bytes, SSL_SESSION** session) {
  const bool known = std::equal(name, name + bytes, std::begin(kKeyName), std::end(kKeyName));
  *session = known ? shared_session(ssl) : nullptr;
  return 1;
}

Status not_agreed(const std::string& why) {
  return invalid_argument("does not agree on the encryption (" + why +
                          "): bytes were changed in transit, or the OpenSSL configuration of one "
                          "side refuses the other's settings");
}

using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

/// TLS 1.3 with one suite, the shared key and nothing else.
Context make_context() {
  Context context(SSL_CTX_new(TLS_method()), &SSL_CTX_free);
  SSL_CTX* c = context.get();
  if (!c || SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(c, kSuite) != 1 || SSL_CTX_set_num_tickets(c, 0) != 1) {
    return {nullptr, &SSL_CTX_free};
  }
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_psk_use_session_callback(c, offer_key);
  SSL_CTX_set_psk_find_session_callback(c, find_key);
  return context;
}

}  // namespace

void TlsSession::Free::operator()(ssl_st* ssl) const { SSL_free(ssl); }
void TlsSession::Free::operator()(ssl_session_st* session) const { SSL_SESSION_free(session); }
void TlsSession::Free::operator()(bio_st* bio) const { BIO_free(bio); }

TlsSession::~TlsSession() = default;

Result<std::unique_ptr<TlsSession>> TlsSession::create(Role role, const Key& key,
                                                       uint64_t records_per_key) {
  std::unique_ptr<TlsSession> session(new TlsSession);
  session->records_per_key_ = records_per_key;
  CFT_TRY(session->prepare(role, key));
  return session;
}

Status TlsSession::prepare(Role role, const Key& key) {
  const Context context = make_context();
  ssl_.reset(context ? SSL_new(context.get()) : nullptr);
  BIO *inner = nullptr, *outer = nullptr;
  if (!ssl_ || BIO_new_bio_pair(&inner, kWireBuffer, &outer, kWireBuffer) != 1) {
    return internal_error("TLS cannot be set up: " + ssl_error_text());
  }
  wire_.reset(outer);
  SSL_set_bio(ssl_.get(), inner, inner);
  shared_.reset(SSL_SESSION_new());
  const SSL_CIPHER* suite = SSL_CIPHER_find(ssl_.get(), kSuiteId);
  if (!shared_ || !suite ||
      SSL_SESSION_set1_master_key(shared_.get(), key.data(), key.size()) != 1 ||
      SSL_SESSION_set_cipher(shared_.get(), suite) != 1 ||
      SSL_SESSION_set_protocol_version(shared_.get(), TLS1_3_VERSION) != 1) {
    return internal_error(std::string("TLS cannot use ") + kSuite + ": " + ssl_error_text());
  }
  SSL_set_app_data(ssl_.get(), shared_.get());
  if (role == Role::kClient) {
    // No certificate is trusted, so a server without the key cannot present one instead.
    SSL_set_verify(ssl_.get(), SSL_VERIFY_PEER, nullptr);
    SSL_set_connect_state(ssl_.get());
  } else {
    SSL_set_accept_state(ssl_.get());
  }
  return {};
}

Result<bool> TlsSession::handshake(int fd) {
  while (true) {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result != 1 && SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ) {
      const std::string why = ssl_error_text();
      flush(fd);  // sends the alert to the peer
      return not_agreed(why);
    }
    if (!flush(fd)) return would_block() ? Result<bool>(false) : hung_up(-1);
    if (result == 1) {
      return SSL_session_reused(ssl_.get()) ? Result<bool>(true) : not_agreed("no shared key");
    }
    const ssize_t n = fill(fd);
    if (n < 0 && would_block()) return false;
    if (n <= 0) return hung_up(n);
  }
}

short TlsSession::events() const { return BIO_ctrl_pending(wire_.get()) > 0 ? POLLOUT : POLLIN; }

/// Writes encrypted bytes to the socket; false, with errno, when some are left.
bool TlsSession::flush(int fd) {
  char* bytes = nullptr;
  for (int count; (count = BIO_nread0(wire_.get(), &bytes)) > 0;) {
    const ssize_t n = ::send(fd, bytes, static_cast<size_t>(count), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0) return false;
    BIO_nread(wire_.get(), &bytes, static_cast<int>(n));
  }
  return true;
}

/// Reads encrypted bytes from the socket; as recv().
ssize_t TlsSession::fill(int fd) {
  char* room = nullptr;
  const int count = BIO_nwrite0(wire_.get(), &room);
  const ssize_t n = ::recv(fd, room, static_cast<size_t>(count), MSG_DONTWAIT);
  if (n > 0) BIO_nwrite(wire_.get(), &room, static_cast<int>(n));
  return n;
}

/// Whether a whole record can be encrypted now.
bool TlsSession::has_room() const {
  return BIO_ctrl_get_write_guarantee(SSL_get_wbio(ssl_.get())) >= kRecord + kRecordOverhead;
}

/// Encrypts as much as fits into the buffer; returns the number of bytes.
ssize_t TlsSession::seal(std::span<const iovec> parts) {
  ssize_t total = 0;
  for (const iovec& part : parts) {
    const std::span bytes(static_cast<const std::byte*>(part.iov_base), part.iov_len);
    for (size_t done = 0; done < bytes.size();) {
      if (!has_room()) return total;
      if (++records_ > records_per_key_) {
        records_ = 1;
        SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_NOT_REQUESTED);
      }
      size_t written = 0;
      const size_t count = std::min(bytes.size() - done, kRecord);
      if (SSL_write_ex(ssl_.get(), &bytes[done], count, &written) != 1) return total;
      done += written;
      total += static_cast<ssize_t>(written);
    }
  }
  return total;
}

/// The result of all calls after bytes arrived that the peer did not send.
ssize_t TlsSession::spoilt() {
  ERR_clear_error();
  errno = EBADMSG;
  return -1;
}

ssize_t TlsSession::send(int fd, std::span<const iovec> parts) {
  if (pending_plain_ == 0) {
    ERR_clear_error();
    pending_plain_ = seal(parts);
  }
  if (!flush(fd)) return -1;
  // libssl does not encrypt any more after input that was not authentic.
  return pending_plain_ > 0 ? std::exchange(pending_plain_, 0) : spoilt();
}

ssize_t TlsSession::receive(int fd, std::span<const iovec> parts) {
  if (corrupted_) return spoilt();
  ERR_clear_error();
  ssize_t total = 0;
  for (const iovec& part : parts) {
    auto* const bytes = static_cast<std::byte*>(part.iov_base);
    for (size_t done = 0; done < part.iov_len;) {
      size_t count = 0;
      const int result = SSL_read_ex(ssl_.get(), bytes + done, part.iov_len - done, &count);
      done += count;
      total += static_cast<ssize_t>(count);
      if (result == 1) continue;
      // close_notify is not used: the ranks' own protocols have a goodbye.
      corrupted_ |= SSL_get_error(ssl_.get(), result) != SSL_ERROR_WANT_READ;
      if (total > 0) return total;
      if (corrupted_) return spoilt();
      if (const ssize_t n = fill(fd); n <= 0) return n;
    }
  }
  return total;
}

}  // namespace cafetiere
