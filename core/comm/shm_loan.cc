// SPDX-License-Identifier: Apache-2.0
#include "core/comm/shm_loan.h"

#ifdef __AVX__
#include <immintrin.h>
#endif

#include <algorithm>
#include <cstring>
#include <utility>

namespace cafetiere {
namespace {

constexpr size_t kLong = 1 << 20;  // the end of such a message does not stay in the cache

Status broken_loan() {
  return internal_error("shared memory: a loan of the peer is outside its memory");
}

void copy_past_cache(std::byte* to, const std::byte* from, size_t bytes) {
  size_t done = 0;
#ifdef __AVX__
  done = std::min(bytes, -reinterpret_cast<uintptr_t>(to) % 32);
  std::memcpy(to, from, done);
  for (; done + 32 <= bytes; done += 32) {
    _mm256_stream_ps(reinterpret_cast<float*>(to + done),
                     _mm256_loadu_ps(reinterpret_cast<const float*>(from + done)));
  }
  _mm_sfence();
#endif
  std::memcpy(to + done, from + done, bytes - done);
}

}  // namespace

void copy_message(std::byte* to, const std::byte* from, size_t bytes, size_t rest) {
  shared_access(from, bytes);
  if (rest >= kLong) {
    copy_past_cache(to, from, bytes);
  } else {
    std::memcpy(to, from, bytes);
  }
}

void Lender::add(std::shared_ptr<const SharedMemory> memory) {
  const size_t index = memories_.size();
  if (index == LoanRing::kMostMemories) return;
  shared_access();
  ring_->memories[index] = memory->place();
  ring_->memory_count.store(uint32_t(index + 1), std::memory_order_release);
  memories_.push_back(std::move(memory));
}

const SharedMemory* Lender::find(const iovec& part) const {
  const auto found = std::ranges::find_if(
      memories_, [&](const auto& memory) { return memory->holds(part.iov_base, part.iov_len); });
  return found == memories_.end() ? nullptr : found->get();
}

bool Lender::lend(const iovec& part, uint64_t at) {
  if (lent_ - taken() >= kLoanSlots) return false;
  const SharedMemory* memory = find(part);
  const auto index = std::ranges::find(memories_, memory, [](const auto& m) { return m.get(); });
  LoanRing::Loan& loan = ring_->loans[lent_ % kLoanSlots];
  shared_access();
  loan.at = at;
  loan.memory = uint32_t(index - memories_.begin());
  loan.offset = uint64_t(static_cast<std::byte*>(part.iov_base) - memory->data());
  loan.bytes = part.iov_len;
  ring_->lent.store(++lent_, std::memory_order_release);
  return true;
}

Result<bool> Lender::all_returned() const {
  const uint64_t returned = taken();
  if (returned > lent_) return broken_loan();
  return returned == lent_;
}

bool Lender::news() {
  const uint64_t returned = taken();
  return std::exchange(seen_, returned) != returned;
}

void Lender::withdraw() {
  ring_->withdrawn.store(1, std::memory_order_relaxed);
  shared_fence(std::memory_order_seq_cst);  // before the memory is written again
}

Result<const SharedMemory*> Borrower::memory(uint32_t index) {
  if (index >= std::min<uint32_t>(ring_->memory_count.load(std::memory_order_acquire),
                                  LoanRing::kMostMemories)) {
    return broken_loan();
  }
  if (!memories_[index]) {
    const SharedMemory::Place place = ring_->memories[index];
    CFT_ASSIGN(memories_[index], SharedMemory::open(place, false));
  }
  return memories_[index].get();
}

std::optional<uint64_t> Borrower::next_at() const {
  if (ring_->lent.load(std::memory_order_acquire) == taken_) return {};
  return slot().at;
}

LoanRing::Loan Borrower::slot() const {
  const LoanRing::Loan& loan = ring_->loans[taken_ % kLoanSlots];
  shared_access(&loan, sizeof loan);
  return loan;
}

Status Borrower::accept() {
  const LoanRing::Loan loan = slot();
  CFT_ASSIGN(const SharedMemory* lies_in, memory(loan.memory));
  const size_t size = lies_in->size();
  if (loan.bytes == 0 || loan.offset > size || loan.bytes > size - loan.offset)
    return broken_loan();
  next_ = lies_in->data() + loan.offset;
  left_ = loan.bytes;
  return {};
}

Result<size_t> Borrower::take(const iovec& part) {
  if (left_ == 0) CFT_TRY(accept());
  const size_t count = std::min({part.iov_len, left_, kLoanChunk});
  copy_message(static_cast<std::byte*>(part.iov_base), next_, count, part.iov_len);
  CFT_TRY(check());
  next_ += count;
  left_ -= count;
  if (left_ == 0) finish();
  return count;
}

Result<const std::byte*> Borrower::borrow(size_t bytes) {
  if (left_ > 0) return nullptr;
  CFT_TRY(accept());
  if (left_ != bytes) return nullptr;
  borrowed_ = true;
  return next_;
}

Status Borrower::give_back() {
  CFT_TRY(check());
  borrowed_ = false;
  left_ = 0;
  finish();
  return {};
}

/// Whether the bytes read so far are valid, that is, not withdrawn.
Status Borrower::check() const {
  shared_fence(std::memory_order_acquire);
  if (ring_->withdrawn.load(std::memory_order_relaxed) == 0) return {};
  return unavailable("shared memory: the peer gave up");
}

void Borrower::finish() { ring_->taken.store(++taken_, std::memory_order_release); }

}  // namespace cafetiere
