// ShmLink: two ranks of one host share memory, one ring of bytes for each direction.
#pragma once

#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "core/base/status.h"
#include "core/comm/socket.h"

namespace cafetiere {

/// Where a process finds the memory that another one made. The token tells the right memory from
/// whatever else may have the same number there.
struct ShmAddress {
  int32_t pid = 0;
  int32_t fd = -1;
  std::array<uint8_t, 32> token{};
};

/// One side of the link. Neither side ever waits for the other in here, and an index that the peer
/// writes is checked before use: a peer that dies or goes mad at any point costs only its data.
/// One thread a side.
class ShmLink {
 public:
  /// Makes the memory; the side that others open().
  static Result<std::unique_ptr<ShmLink>> create();
  /// Maps the memory that the process of `address` made; an error where the system forbids it.
  static Result<std::unique_ptr<ShmLink>> open(const ShmAddress& address);
  ~ShmLink();
  ShmLink(const ShmLink&) = delete;
  ShmLink& operator=(const ShmLink&) = delete;

  /// Of the side that made the memory, until drop_fd().
  const ShmAddress& address() const { return address_; }
  /// The peer has it open, or never will.
  void drop_fd() { fd_ = Fd(); }

  /// Copies what fits now, at most a chunk, from `parts` to the peer; the number of bytes.
  Result<size_t> write(std::span<const iovec> parts);
  /// Copies what is there now, at most a chunk, to `parts`; the number of bytes.
  Result<size_t> read(std::span<const iovec> parts);

  /// Says that this side is about to sleep until it is woken. False when there is something to do
  /// for one that `writes` or `reads`: then do not sleep.
  bool may_sleep(bool writes, bool reads);
  void woke();
  /// True once when the peer sleeps and must be woken, as it has something to do.
  bool must_wake_peer();

 private:
  struct Shared;
  struct Ring;

  ShmLink(void* memory, int side);
  static Result<std::unique_ptr<ShmLink>> map(int fd, int side);

  Shared* const shared_;
  const int side_;  // 0 made the memory
  Ring* const out_;
  Ring* const in_;
  uint64_t written_ = 0, read_ = 0;  // own indices: the shared copies are for the peer
  Fd fd_;
  ShmAddress address_;
};

}  // namespace cafetiere
