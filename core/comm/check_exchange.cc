// SPDX-License-Identifier: Apache-2.0
#include "core/comm/check_exchange.h"

#include <fmt/format.h>

namespace cafetiere {
namespace {

Status check_message(int rank, int size, const char* verb, int peer, const void* data,
                     size_t bytes) {
  if (peer < 0 || peer >= size || peer == rank) {
    return internal_error(fmt::format(
        "exchange: rank {} of {} cannot {} rank {}: a peer is another rank of the group", rank,
        size, verb, peer));
  }
  if (bytes > kMaxMessageBytes || (data == nullptr && bytes > 0)) {
    return internal_error(fmt::format("exchange: rank {} cannot {} rank {} {} bytes at {}", rank,
                                      verb, peer, bytes, data));
  }
  return {};
}

}  // namespace

Status check_exchange(int rank, int size, std::span<const Send> sends,
                      std::span<const Receive> receives) {
  for (const Send& s : sends) {
    CFT_TRY(check_message(rank, size, "send to", s.peer, s.data, s.bytes));
  }
  for (const Receive& r : receives) {
    CFT_TRY(check_message(rank, size, "receive from", r.peer, r.data, r.bytes));
  }
  return {};
}

}  // namespace cafetiere
