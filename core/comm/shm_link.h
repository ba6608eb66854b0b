// SPDX-License-Identifier: Apache-2.0
// ShmLink: shared memory between two ranks of one host: in each direction a byte ring, and
// zero-copy loans of long messages.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "core/base/status.h"
#include "core/comm/shm_loan.h"
#include "core/comm/shm_protocol.h"

namespace cafetiere {

/// How a process finds the memory that another one created, and the token it must contain.
struct ShmAddress {
  SharedMemory::Place place{};
  std::array<uint8_t, 32> token{};
};

/// One side of the link; see core/comm/shm_protocol.h for the state table. No call blocks, and an
/// index from the peer is checked before use: a peer that dies or misbehaves at any point affects
/// only its own data. Used by one thread per side.
class ShmLink {
 public:
  /// Creates the memory; the other side opens it.
  static Result<std::unique_ptr<ShmLink>> create();
  /// Maps the memory created by the process of `address`; an error if the system forbids it.
  static Result<std::unique_ptr<ShmLink>> open(const ShmAddress& address);
  ShmLink(const ShmLink&) = delete;
  ShmLink& operator=(const ShmLink&) = delete;

  /// Only on the side that created the memory, until drop_fd().
  const ShmAddress& address() const { return address_; }
  /// Closes the descriptor once the peer has opened it, or never will.
  void drop_fd() { memory_->drop_fd(); }

  /// Exports `memory`: from now on the peer reads long messages there in place.
  void lend(std::shared_ptr<const SharedMemory> memory) { lender_.add(std::move(memory)); }

  /// Copies as much of `parts`, the rest of a message, as fits now, at most a chunk; returns the
  /// number of bytes. Exported bytes count at once, but must not change until all_returned() or
  /// give_up().
  Result<size_t> write(std::span<const iovec> parts);
  /// Copies the available bytes, at most a chunk, to `parts`; returns the number of bytes.
  Result<size_t> read(std::span<const iovec> parts);
  /// The next message's body if it is a loan of `bytes` bytes, else null; valid until give_back().
  Result<const std::byte*> borrow(size_t bytes);
  bool borrowed() const { return borrower_.borrowed(); }
  /// An error if the peer gave up meanwhile.
  Status give_back();
  /// Nothing more will be written, and lent bytes may change.
  void give_up() { lender_.withdraw(); }
  /// Whether the peer has loans that it has not returned.
  bool has_loans_out() const { return lender_.has_loans_out(); }
  /// Whether it returned any since this or may_sleep() was last called.
  bool news() { return lender_.news(); }
  /// Whether all loans are returned; an error if the peer's count is invalid.
  Result<bool> all_returned() const { return lender_.all_returned(); }

  /// Announces that this side is about to sleep until it is woken. False if there is work for a
  /// side that `writes` or `reads`: then it must not sleep.
  bool may_sleep(bool writes, bool reads);
  void woke();
  /// True once if the peer sleeps and has work, so that it must be woken.
  bool must_wake_peer();

 private:
  struct Shared;
  struct Ring;

  ShmLink(std::shared_ptr<SharedMemory> memory, int side);
  Result<size_t> write_ring(std::span<const iovec> parts);

  const std::shared_ptr<SharedMemory> memory_;
  Shared* const shared_;  // inside memory_
  const int side_;        // 0 created the memory
  Ring* const out_;
  Ring* const in_;
  uint64_t written_ = 0, read_ = 0;  // own indices: the shared copies are for the peer
  Lender lender_;
  Borrower borrower_;
  bool no_slot_ = false;  // no credits: write() waits until the peer returns a loan
  bool changed_ = false;  // a change that the peer may wait for
  ShmAddress address_;
};

}  // namespace cafetiere
