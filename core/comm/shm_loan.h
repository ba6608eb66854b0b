// SPDX-License-Identifier: Apache-2.0
// Loans: zero-copy messages between two ranks of one host.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/comm/shared_memory.h"
#include "core/comm/shm_protocol.h"

namespace cafetiere {

/// A descriptor ring in memory mapped by both sides: a loan is the descriptor of an exported
/// buffer, a free slot is a credit, `taken` counts completions (state table:
/// core/comm/shm_protocol.h).
struct LoanRing {
  static constexpr size_t kMostMemories = 8;

  struct Loan {
    uint64_t at;  // position in the byte ring at which it is inserted
    uint32_t memory;
    uint64_t offset, bytes;
  };
  std::array<SharedMemory::Place, kMostMemories> memories;
  SharedWord<uint32_t> memory_count;
  alignas(64) std::array<Loan, kLoanSlots> loans;
  SharedWord<uint64_t> lent;               // loans so far
  SharedWord<uint32_t> withdrawn;          // nonzero: the lent bytes may have changed
  alignas(64) SharedWord<uint64_t> taken;  // loans read completely
};

/// Copies a part of a message of which `rest` bytes remain. For long messages, which would evict
/// the cache, it uses streaming stores.
void copy_message(std::byte* to, const std::byte* from, size_t bytes, size_t rest);

/// The exporting side. The bytes must not change until all loans are returned or withdrawn.
class Lender {
 public:
  explicit Lender(LoanRing* ring) : ring_(ring) {}

  /// Exports `memory` to the peer; does nothing if kMostMemories are exported already.
  void add(std::shared_ptr<const SharedMemory> memory);
  /// Whether `part` is long enough and in exported memory.
  bool lends(const iovec& part) const { return part.iov_len >= kShortestLoan && find(part); }
  /// Lends `part`, which follows byte `at` of the ring; false without credits (all slots in use).
  bool lend(const iovec& part, uint64_t at);
  /// Whether the peer has loans that it has not returned.
  bool has_loans_out() const { return taken() != lent_; }
  /// Whether all loans are returned; an error if the peer's count is invalid.
  Result<bool> all_returned() const;
  /// Whether the peer returned anything since the last call.
  bool news();
  /// Cancels all loans: a peer that still reads them gets an error instead of stale data.
  void withdraw();

 private:
  const SharedMemory* find(const iovec& part) const;
  uint64_t taken() const { return ring_->taken.load(std::memory_order_acquire); }

  LoanRing* const ring_;
  std::vector<std::shared_ptr<const SharedMemory>> memories_;
  uint64_t lent_ = 0, seen_ = 0;
};

/// The importing side. Checks what the lender writes before use.
class Borrower {
 public:
  explicit Borrower(LoanRing* ring) : ring_(ring) {}

  /// The ring position at which the next loan is inserted; empty if there is no loan.
  std::optional<uint64_t> next_at() const;
  /// Copies the next bytes of the loan to `part`, at most a chunk; returns their number.
  Result<size_t> take(const iovec& part);
  /// Whether a loan is partly read.
  bool reading() const { return left_ > 0; }
  /// The loan's address if it has `bytes` bytes and none have been taken, else null; valid until
  /// give_back().
  Result<const std::byte*> borrow(size_t bytes);
  bool borrowed() const { return borrowed_; }
  /// An error if the lender withdrew it meanwhile.
  Status give_back();

 private:
  LoanRing::Loan slot() const;  // of the next loan
  Status accept();
  Status check() const;
  void finish();
  Result<const SharedMemory*> memory(uint32_t index);

  LoanRing* const ring_;
  std::array<std::shared_ptr<SharedMemory>, LoanRing::kMostMemories> memories_;
  uint64_t taken_ = 0;
  const std::byte* next_ = nullptr;
  size_t left_ = 0;  // of the loan that is being read
  bool borrowed_ = false;
};

}  // namespace cafetiere
