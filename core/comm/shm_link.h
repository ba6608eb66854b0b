// SPDX-License-Identifier: Apache-2.0
// ShmLink: two ranks of one host share memory: one ring of bytes for each direction, and loans of
// what is long.
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

/// Where a process finds the memory that another one made, and what it must read there.
struct ShmAddress {
  SharedMemory::Place place{};
  std::array<uint8_t, 32> token{};
};

/// One side of the link; core/comm/shm_protocol.h has the table of its states. Neither side ever waits for the other in here, and an index that the peer
/// writes is checked before use: a peer that dies or goes mad at any point costs only its data.
/// One thread a side.
class ShmLink {
 public:
  /// Makes the memory; the side that others open().
  static Result<std::unique_ptr<ShmLink>> create();
  /// Maps the memory that the process of `address` made; an error where the system forbids it.
  static Result<std::unique_ptr<ShmLink>> open(const ShmAddress& address);
  ShmLink(const ShmLink&) = delete;
  ShmLink& operator=(const ShmLink&) = delete;

  /// Of the side that made the memory, until drop_fd().
  const ShmAddress& address() const { return address_; }
  /// The peer has it open, or never will.
  void drop_fd() { memory_->drop_fd(); }

  /// From now on long messages that lie in `memory` are read where they lie.
  void lend(std::shared_ptr<const SharedMemory> memory) { lender_.add(std::move(memory)); }

  /// Copies what fits now, at most a chunk, from `parts`, a message's rest, to the peer; the number
  /// of bytes. What lies in lent memory counts at once, but must stay as it is until all_returned(),
  /// or give_up().
  Result<size_t> write(std::span<const iovec> parts);
  /// Copies what is there now, at most a chunk, to `parts`, a message's rest; the number of bytes.
  Result<size_t> read(std::span<const iovec> parts);
  /// Where the next message's body lies if it is lent and has `bytes`, else null; until give_back().
  Result<const std::byte*> borrow(size_t bytes);
  bool borrowed() const { return borrower_.borrowed(); }
  /// An error where the peer gave up meanwhile.
  Status give_back();
  /// Nothing will be written any more, and what is lent may change.
  void give_up() { lender_.withdraw(); }
  /// Whether the peer has still to read what lies here.
  bool is_owed() const { return lender_.is_owed(); }
  /// Whether it has read any of it since this or may_sleep() was last asked.
  bool news() { return lender_.news(); }
  /// The contrary of is_owed(); an error where the peer says nonsense.
  Result<bool> all_returned() const { return lender_.all_returned(); }

  /// Says that this side is about to sleep until it is woken. False when there is something to do
  /// for one that `writes` or `reads`: then do not sleep.
  bool may_sleep(bool writes, bool reads);
  void woke();
  /// True once when the peer sleeps and must be woken, as it has something to do.
  bool must_wake_peer();

 private:
  struct Shared;
  struct Ring;

  ShmLink(std::shared_ptr<SharedMemory> memory, int side);
  Result<size_t> write_ring(std::span<const iovec> parts);

  const std::shared_ptr<SharedMemory> memory_;
  Shared* const shared_;  // in it
  const int side_;        // 0 made the memory
  Ring* const out_;
  Ring* const in_;
  uint64_t written_ = 0, read_ = 0;  // own indices: the shared copies are for the peer
  Lender lender_;
  Borrower borrower_;
  bool overdrawn_ = false;  // write() waits until the peer returns a loan
  bool changed_ = false;    // something that the peer may sleep for
  ShmAddress address_;
};

}  // namespace cafetiere
