// SPDX-License-Identifier: Apache-2.0
#include "core/comm/handshake.h"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/comm/socket.h"

namespace cafetiere {
namespace {

constexpr uint64_t kHandshakeMagic = 0x50524754464143ull;  // "CAFTGRP", in little-endian byte order
constexpr uint32_t kVersion = 3;

enum Refusal : uint32_t {
  kNone = 0,
  kWrongVersion = 1,
  kWrongGeneration = 2,
  kWrongSize = 3,
  kWrongRank = 4,
  kWrongSecret = 5,
  kWrongEncryption = 6,
};

/// Text received from a peer, made safe for a log line.
std::string printable(const std::array<char, kMaxGeneration>& text, uint32_t bytes) {
  std::string s(text.data(), std::min<size_t>(bytes, text.size()));
  for (char& c : s) {
    if (c < ' ' || c > '~') c = '?';
  }
  return s;
}

template <class Message>
void put_generation(const std::string& generation, Message* message) {
  message->generation_bytes = static_cast<uint32_t>(generation.size());
  std::copy(generation.begin(), generation.end(), message->generation.begin());
}

const char* encryption_text(bool encrypts) { return encrypts ? "encrypts" : "does not encrypt"; }

}  // namespace

Handshake Handshake::initiate(const Identity& self, int peer, Channel channel) {
  Handshake h(self);
  h.initiator_ = true;
  h.peer_ = peer;
  h.channel_ = channel;
  h.hello_ = {.magic = kHandshakeMagic,
              .version = kVersion,
              .rank = static_cast<uint32_t>(self.rank),
              .target = static_cast<uint32_t>(peer),
              .size = static_cast<uint32_t>(self.size),
              .channel = static_cast<uint16_t>(channel),
              .encrypt = self.encrypt,
              .generation_bytes = 0,
              .generation = {},
              .nonce = {}};
  put_generation(self.generation, &h.hello_);
  if (RAND_bytes(h.hello_.nonce.data(), h.hello_.nonce.size()) != 1) {
    h.fail(internal_error("handshake: the system gave no random bytes"));
  }
  return h;
}

Handshake Handshake::accept(const Identity& self) { return Handshake(self); }

bool Handshake::writes() const {
  return initiator_ == (stage_ == Stage::kHello || stage_ == Stage::kProof);
}

short Handshake::events() const {
  if (stage_ == Stage::kTls) return tls_->events();
  return writes() ? POLLOUT : POLLIN;
}

std::span<std::byte> Handshake::message() {
  switch (stage_) {
    case Stage::kHello:
      return std::as_writable_bytes(std::span(&hello_, 1));
    case Stage::kReply:
      return std::as_writable_bytes(std::span(&reply_, 1));
    case Stage::kProof:
      return std::as_writable_bytes(std::span(proof_));
    case Stage::kVerdict:
      return std::as_writable_bytes(std::span(&verdict_, 1));
    case Stage::kTls:
    case Stage::kEnd:
      break;
  }
  return {};
}

Handshake::State Handshake::step(int fd) {
  exchange_messages(fd);
  if (status_.ok() && stage_ == Stage::kTls) {
    const Result<bool> done = tls_->handshake(fd);
    if (!done.ok()) fail(done.status());
    if (done.ok() && *done) stage_ = Stage::kEnd;
  }
  if (!status_.ok()) return State::kFailed;
  return stage_ == Stage::kEnd ? State::kDone : State::kRunning;
}

void Handshake::exchange_messages(int fd) {
  while (status_.ok() && stage_ < Stage::kTls) {
    const auto rest = message().subspan(done_);
    const ssize_t n = writes() ? send(fd, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT)
                               : recv(fd, rest.data(), rest.size(), MSG_DONTWAIT);
    if (n < 0 && would_block()) return;
    if (n <= 0) return fail(hung_up(n));
    done_ += static_cast<size_t>(n);
    // The magic number is enough to reject a port scanner; do not wait for a whole Hello.
    if (stage_ == Stage::kHello && !initiator_ && done_ >= sizeof kHandshakeMagic &&
        hello_.magic != kHandshakeMagic) {
      fail(invalid_argument("does not speak this protocol"));
    } else if (done_ == message().size()) {
      finish_stage();
    }
  }
}

void Handshake::finish_stage() {
  done_ = 0;
  switch (stage_) {
    case Stage::kHello:
      stage_ = Stage::kReply;
      if (!initiator_) take_hello();
      break;
    case Stage::kReply:
      stage_ = Stage::kProof;
      if (initiator_) take_reply();
      if (!initiator_ && hello_.version != kVersion) fail(refusal_error(kWrongVersion));
      break;
    case Stage::kProof:
      stage_ = Stage::kVerdict;
      if (!initiator_) take_proof();
      break;
    case Stage::kVerdict:
      take_verdict();
      break;
    case Stage::kTls:
    case Stage::kEnd:
      break;
  }
}

uint32_t Handshake::judge_hello() const {
  const std::string& generation = self_->generation;
  if (hello_.generation_bytes != generation.size() ||
      !std::equal(generation.begin(), generation.end(), hello_.generation.begin())) {
    return kWrongGeneration;
  }
  if (hello_.size != static_cast<uint32_t>(self_->size)) return kWrongSize;
  if (hello_.encrypt != self_->encrypt) return kWrongEncryption;
  const bool ranks_fit = hello_.target == static_cast<uint32_t>(self_->rank) &&
                         hello_.rank > hello_.target && hello_.rank < hello_.size;
  if (!ranks_fit || hello_.channel > static_cast<uint16_t>(Channel::kControl)) return kWrongRank;
  return kNone;
}

void Handshake::take_hello() {
  reply_ = {.magic = kHandshakeMagic, .version = kVersion, .reserved = 0, .nonce = {}};
  if (RAND_bytes(reply_.nonce.data(), reply_.nonce.size()) != 1) {
    fail(internal_error("handshake: the system gave no random bytes"));
  }
}

void Handshake::take_reply() {
  if (reply_.magic != kHandshakeMagic) {
    return fail(invalid_argument("does not speak this protocol"));
  }
  if (reply_.version != kVersion) return fail(refusal_error(kWrongVersion));
  proof_ = initiators_proof();
}

void Handshake::take_proof() {
  verdict_ = {};
  verdict_.refusal = kWrongSecret;
  const auto expected = initiators_proof();
  if (CRYPTO_memcmp(expected.data(), proof_.data(), expected.size()) != 0) return;
  verdict_.refusal = judge_hello();
  verdict_.rank = static_cast<uint32_t>(self_->rank);
  verdict_.size = static_cast<uint32_t>(self_->size);
  put_generation(self_->generation, &verdict_);
  verdict_.proof = acceptors_proof();
  if (verdict_.refusal != kNone) return;
  peer_ = static_cast<int>(hello_.rank);
  channel_ = static_cast<Channel>(hello_.channel);
}

void Handshake::take_verdict() {
  if (initiator_) {
    const auto expected = acceptors_proof();
    const bool same = CRYPTO_memcmp(expected.data(), verdict_.proof.data(), expected.size()) == 0;
    if (!same) verdict_.refusal = kWrongSecret;
  }
  if (verdict_.refusal != kNone) return fail(refusal_error(verdict_.refusal));
  stage_ = self_->encrypt ? Stage::kTls : Stage::kEnd;
  if (self_->encrypt) start_tls();
}

std::string Handshake::transcript() const {
  return std::string(reinterpret_cast<const char*>(&hello_), sizeof hello_) +
         std::string(reinterpret_cast<const char*>(&reply_), sizeof reply_);
}

std::array<uint8_t, 32> Handshake::initiators_proof() const { return proof_of('I' + transcript()); }

std::array<uint8_t, 32> Handshake::acceptors_proof() const {
  const auto* verdict = reinterpret_cast<const char*>(&verdict_);
  return proof_of('A' + transcript() + std::string(verdict, offsetof(wire::Verdict, proof)));
}

std::array<uint8_t, 32> Handshake::proof_of(const std::string& text) const {
  std::array<uint8_t, 32> mac{};
  unsigned bytes = 0;
  HMAC(EVP_sha256(), self_->secret.data(), static_cast<int>(self_->secret.size()),
       reinterpret_cast<const uint8_t*>(text.data()), text.size(), mac.data(), &bytes);
  return mac;
}

Result<TlsSession::Key> Handshake::tls_key() const {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> hkdf(
      EVP_KDF_fetch(nullptr, OSSL_KDF_NAME_HKDF, nullptr), &EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> context(
      EVP_KDF_CTX_new(hkdf.get()), &EVP_KDF_CTX_free);
  std::string secret = self_->secret, salt = transcript(), digest = "SHA256", use = "TLS 1.3 PSK";
  const std::array params = {
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), digest.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, salt.data(), salt.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, use.data(), use.size()),
      OSSL_PARAM_construct_end()};
  TlsSession::Key key;
  if (!context || EVP_KDF_derive(context.get(), key.data(), key.size(), params.data()) != 1) {
    return internal_error("handshake: OpenSSL has no HKDF-SHA256");
  }
  return key;
}

void Handshake::start_tls() {
  const auto role = initiator_ ? TlsSession::Role::kClient : TlsSession::Role::kServer;
  const Result<TlsSession::Key> key = tls_key();
  if (!key.ok()) return fail(key.status());
  auto session = TlsSession::create(role, *key);
  if (!session.ok()) return fail(session.status());
  tls_ = std::move(*session);
}

Status Handshake::refusal_error(uint32_t refusal) const {
  const std::string theirs = initiator_ ? printable(verdict_.generation, verdict_.generation_bytes)
                                        : printable(hello_.generation, hello_.generation_bytes);
  switch (refusal) {
    case kWrongVersion:
      return invalid_argument(
          fmt::format("speaks protocol version {}, this rank speaks {}: use the same release on "
                      "all executors",
                      initiator_ ? reply_.version : hello_.version, kVersion));
    case kWrongGeneration:
      return invalid_argument(
          fmt::format("belongs to generation '{}', this rank to '{}': one of them is left over "
                      "from another attempt of the job",
                      theirs, self_->generation));
    case kWrongSize:
      return invalid_argument(fmt::format("expects {} ranks, this rank expects {}",
                                          initiator_ ? verdict_.size : hello_.size, self_->size));
    case kWrongRank:
      return invalid_argument(
          "has a rank other than in the list of addresses: give every rank the same list, in rank "
          "order");
    case kWrongSecret:
      return invalid_argument("has a different secret: give all ranks of a run the same secret");
    case kWrongEncryption: {
      const bool theirs_encrypt = initiator_ ? !self_->encrypt : hello_.encrypt != 0;
      return invalid_argument(
          fmt::format("{} its connections, this rank {} them: give all ranks the same `encrypt`",
                      encryption_text(theirs_encrypt), encryption_text(self_->encrypt)));
    }
    default:
      return invalid_argument(fmt::format("refused the connection with code {}", refusal));
  }
}

void Handshake::fail(Status status) { status_ = std::move(status); }

}  // namespace cafetiere
