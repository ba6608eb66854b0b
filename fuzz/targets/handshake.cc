// SPDX-License-Identifier: Apache-2.0
// A hostile peer at either end of a new connection: all it sends, then the end of the stream. The
// first byte says which end it is, and whether encryption is to follow.
#include "core/comm/handshake.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>

#include "fuzz/targets.h"

void cafetiere::fuzz::handshake(std::string_view bytes) {
  constexpr size_t kLongest = 4096;  // fits into a socket's buffer
  if (bytes.empty() || bytes.size() > kLongest) return;
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::abort();
  const std::string_view sent = bytes.substr(1);
  if (write(ends[1], sent.data(), sent.size()) != static_cast<ssize_t>(sent.size())) std::abort();
  shutdown(ends[1], SHUT_WR);
  const Identity self{.rank = 1,
                      .size = 4,
                      .generation = "job 1",
                      .secret = "secret",
                      .encrypt = (bytes[0] & 2) != 0};
  Handshake ours = bytes[0] & 1 ? Handshake::initiate(self, /*peer=*/0, Channel::kData)
                                : Handshake::accept(self);
  // A stranger does not know the secret, and its stream ends: this fails, and soon.
  if (ours.step(ends[0]) != Handshake::State::kFailed || ours.status().ok()) std::abort();
  close(ends[0]);
  close(ends[1]);
}
