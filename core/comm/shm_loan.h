// SPDX-License-Identifier: Apache-2.0
// Loans: long messages between two ranks of one host, read where they lie.
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

/// What the two sides of one direction share (core/comm/shm_protocol.h has the table of its states).
struct LoanBook {
  static constexpr size_t kMostMemories = 8;

  struct Loan {
    uint64_t at;  // how many bytes went through the ring before it
    uint32_t memory;
    uint64_t offset, bytes;
  };
  std::array<SharedMemory::Place, kMostMemories> memories;
  SharedWord<uint32_t> memory_count;
  alignas(64) std::array<Loan, kLoanSlots> loans;
  SharedWord<uint64_t> lent;               // loans so far
  SharedWord<uint32_t> withdrawn;          // not 0: they are not what they were
  alignas(64) SharedWord<uint64_t> taken;  // loans that were read to their end
};

/// Copies a part of a message of which `rest` bytes are still to come: past the cache where it is
/// long, as a long array would only sweep the cache and need not be read before it is written.
void copy_message(std::byte* to, const std::byte* from, size_t bytes, size_t rest);

/// The side that lends. The bytes must stay as they are until all is returned or withdrawn.
class Lender {
 public:
  explicit Lender(LoanBook* book) : book_(book) {}

  /// Lets the peer into `memory` from now on; nothing where there are kMostMemories already.
  void add(std::shared_ptr<const SharedMemory> memory);
  /// Whether a message of these bytes can be lent.
  bool lends(const iovec& part) const { return part.iov_len >= kShortestLoan && find(part); }
  /// Lends `part`, which comes after byte `at` of the ring; false where too much is lent already.
  bool lend(const iovec& part, uint64_t at);
  /// Whether the peer has still to read something.
  bool is_owed() const { return taken() != lent_; }
  /// The contrary; an error where the peer says nonsense.
  Result<bool> all_returned() const;
  /// Whether the peer returned anything since the last call.
  bool news();
  /// A peer that still reads will know that it read rubbish.
  void withdraw();

 private:
  const SharedMemory* find(const iovec& part) const;
  uint64_t taken() const { return book_->taken.load(std::memory_order_acquire); }

  LoanBook* const book_;
  std::vector<std::shared_ptr<const SharedMemory>> memories_;
  uint64_t lent_ = 0, seen_ = 0;
};

/// The side that reads. What the lender writes is checked before use.
class Borrower {
 public:
  explicit Borrower(LoanBook* book) : book_(book) {}

  /// The byte of the ring that the next loan comes before; nothing where there is none.
  std::optional<uint64_t> next_at() const;
  /// Copies the loan's next bytes to `part`, at most a chunk; how many.
  Result<size_t> take(const iovec& part);
  /// Whether a loan is begun and not read to its end.
  bool reading() const { return left_ > 0; }
  /// The loan itself where it has `bytes` of which none is taken, else null; until give_back().
  Result<const std::byte*> borrow(size_t bytes);
  bool borrowed() const { return borrowed_; }
  /// An error where the lender withdrew it meanwhile.
  Status give_back();

 private:
  LoanBook::Loan slot() const;  // of the next loan
  Status accept();
  Status check() const;
  void finish();
  Result<const SharedMemory*> memory(uint32_t index);

  LoanBook* const book_;
  std::array<std::shared_ptr<SharedMemory>, LoanBook::kMostMemories> memories_;
  uint64_t taken_ = 0;
  const std::byte* next_ = nullptr;
  size_t left_ = 0;  // of the loan that is being read
  bool borrowed_ = false;
};

}  // namespace cafetiere
