// SPDX-License-Identifier: Apache-2.0
// Handshake: both ends of a new connection prove that they know the run's secret and agree on
// generation, size and ranks, before anything else is read.
//
//   initiator                     acceptor
//   Hello (who, nonce)      ->
//                           <-    Reply (nonce)
//   Proof                   ->
//                           <-    Verdict (refusal?, who, proof)
//
// A proof is HMAC-SHA256 with the secret over the role and all messages before it, so it is valid
// only for this connection, this direction and these claims. The initiator proves first: without
// the secret it learns the protocol's version, but neither the group nor anything to verify guesses
// against. Every message has a fixed size: an unauthenticated connection costs at most a few
// hundred bytes until the deadline.
//
// With encryption TLS follows, with a key for this connection only: HKDF-SHA256 (RFC 5869) of the
// secret, salted with the Hello and the Reply. No unauthenticated peer reaches the TLS library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/base/status.h"
#include "core/comm/tls_session.h"

namespace cafetiere {

inline constexpr size_t kMaxGeneration = 96;
/// Minimum length of a secret. An attacker with a rank's proof could find a shorter one by brute
/// force.
inline constexpr size_t kMinSecret = 16;

/// The identity that a rank claims. All ranks of a group share all fields but `rank`.
struct Identity {
  int rank = 0;
  int size = 1;
  std::string generation;  ///< at most kMaxGeneration bytes
  std::string secret;
  bool encrypt = false;  ///< everything after the handshake is encrypted
};

/// Two connections per pair of ranks: heartbeats and goodbyes must not queue behind data.
enum class Channel : uint8_t { kData = 0, kControl = 1 };

namespace wire {

struct Hello {
  uint64_t magic;
  uint32_t version;
  uint32_t rank, target, size;
  uint16_t channel, encrypt;
  uint32_t generation_bytes;
  std::array<char, kMaxGeneration> generation;
  std::array<uint8_t, 32> nonce;
};

struct Reply {
  uint64_t magic;
  uint32_t version, reserved;
  std::array<uint8_t, 32> nonce;
};

/// All zero except `refusal` for a peer that has not proved knowledge of the secret.
struct Verdict {
  uint32_t refusal;
  uint32_t rank, size, generation_bytes;
  std::array<char, kMaxGeneration> generation;
  std::array<uint8_t, 32> proof;
};

}  // namespace wire

/// One side of the handshake, driven by the owner of the non-blocking socket.
class Handshake {
 public:
  enum class State { kRunning, kDone, kFailed };

  static Handshake initiate(const Identity& self, int peer, Channel channel);
  static Handshake accept(const Identity& self);

  /// Reads and writes as much as the socket allows now.
  State step(int fd);
  /// What to poll for while kRunning: POLLIN or POLLOUT.
  short events() const;
  /// Why the handshake failed.
  const Status& status() const { return status_; }

  int peer() const { return peer_; }
  Channel channel() const { return channel_; }
  /// The TLS session once the handshake is done; null without encryption.
  std::unique_ptr<TlsSession> take_tls() { return std::move(tls_); }

 private:
  enum class Stage { kHello, kReply, kProof, kVerdict, kTls, kEnd };

  explicit Handshake(const Identity& self) : self_(&self) {}
  bool writes() const;
  std::span<std::byte> message();
  void exchange_messages(int fd);
  void finish_stage();
  void take_hello();
  void take_reply();
  void take_proof();
  void take_verdict();
  void start_tls();
  uint32_t judge_hello() const;
  Status refusal_error(uint32_t refusal) const;
  std::string transcript() const;
  std::array<uint8_t, 32> initiators_proof() const;
  std::array<uint8_t, 32> acceptors_proof() const;
  std::array<uint8_t, 32> proof_of(const std::string& text) const;
  Result<TlsSession::Key> tls_key() const;
  void fail(Status status);

  const Identity* self_;
  bool initiator_ = false;
  int peer_ = -1;
  Channel channel_ = Channel::kData;
  Stage stage_ = Stage::kHello;
  wire::Hello hello_{};
  wire::Reply reply_{};
  std::array<uint8_t, 32> proof_{};
  wire::Verdict verdict_{};
  std::unique_ptr<TlsSession> tls_;
  size_t done_ = 0;  // bytes of this stage's message read or written so far
  Status status_;
};

}  // namespace cafetiere
