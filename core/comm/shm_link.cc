// SPDX-License-Identifier: Apache-2.0
#include "core/comm/shm_link.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cafetiere {
namespace {

Status broken() { return internal_error("shared memory: the peer wrote an invalid index"); }

/// Calls copy(bytes of part, length) for the first `count` bytes of `parts`.
template <class Copy>
void for_parts(std::span<const iovec> parts, size_t count, const Copy& copy) {
  for (const iovec& part : parts) {
    const size_t n = std::min(count, part.iov_len);
    if (n > 0) copy(static_cast<std::byte*>(part.iov_base), n);
    count -= n;
  }
}

size_t total(std::span<const iovec> parts) {
  size_t sum = 0;
  for (const iovec& part : parts) sum += part.iov_len;
  return sum;
}

}  // namespace

/// Bytes written and read since the start; their difference is the content of the ring.
struct ShmLink::Ring {
  alignas(64) SharedWord<uint64_t> written;
  alignas(64) SharedWord<uint64_t> read;
  alignas(64) std::array<std::byte, kRingBytes> bytes;

  /// Calls copy(bytes of the ring, length) for the `count` bytes from index `at`.
  template <class Copy>
  void for_range(uint64_t at, size_t count, const Copy& copy) {
    const size_t first = std::min(count, kRingBytes - at % kRingBytes);
    copy(bytes.data() + at % kRingBytes, first);
    if (count > first) copy(bytes.data(), count - first);
  }
};

struct ShmLink::Shared {
  std::array<uint8_t, 32> token;
  alignas(64) SharedWord<uint32_t> asleep[2];
  Ring rings[2];      // written by side 0, by side 1
  LoanRing loans[2];  // of side 0, of side 1
};

ShmLink::ShmLink(std::shared_ptr<SharedMemory> memory, int side)
    : memory_(std::move(memory)),
      shared_(reinterpret_cast<Shared*>(memory_->data())),
      side_(side),
      out_(&shared_->rings[side]),
      in_(&shared_->rings[1 - side]),
      lender_(&shared_->loans[side]),
      borrower_(&shared_->loans[1 - side]) {
  static_assert(std::atomic<uint64_t>::is_always_lock_free);
}

Result<std::unique_ptr<ShmLink>> ShmLink::create() {
  CFT_ASSIGN(std::shared_ptr<SharedMemory> memory, SharedMemory::create(sizeof(Shared)));
  std::unique_ptr<ShmLink> link(new ShmLink(std::move(memory), 0));
  ShmAddress& address = link->address_;
  address.place = link->memory_->place();
  if (RAND_bytes(address.token.data(), static_cast<int>(address.token.size())) != 1) {
    return internal_error("shared memory: the system gave no random bytes");
  }
  link->shared_->token = address.token;  // the rest is zero, as the indices must be
  return link;
}

Result<std::unique_ptr<ShmLink>> ShmLink::open(const ShmAddress& address) {
  if (address.place.bytes != sizeof(Shared)) {
    return io_error("shared memory: the peer's memory has another size");
  }
  CFT_ASSIGN(std::shared_ptr<SharedMemory> memory, SharedMemory::open(address.place, true));
  std::unique_ptr<ShmLink> link(new ShmLink(std::move(memory), 1));
  const auto& token = link->shared_->token;
  if (CRYPTO_memcmp(token.data(), address.token.data(), token.size()) != 0) {
    return io_error("shared memory: the memory found is not the peer's");
  }
  return link;
}

/// A long message in exported memory is not copied: only its header goes through the ring.
Result<size_t> ShmLink::write(std::span<const iovec> parts) {
  const iovec body = parts.back();
  if (!lender_.lends(body)) return write_ring(parts);
  if (parts.size() > 1) return write_ring(parts.first(parts.size() - 1));
  no_slot_ = !lender_.lend(body, written_);
  changed_ |= !no_slot_;
  return no_slot_ ? 0 : body.iov_len;
}

Result<size_t> ShmLink::write_ring(std::span<const iovec> parts) {
  const uint64_t held = written_ - out_->read.load(std::memory_order_acquire);
  if (held > kRingBytes) return broken();
  const size_t count = std::min({total(parts), kRingBytes - held, kRingChunk});
  uint64_t at = written_;
  for_parts(parts, count, [&](const std::byte* from, size_t n) {
    out_->for_range(at, n, [&](std::byte* to, size_t bytes) {
      shared_access();
      std::memcpy(to, from, bytes);
      from += bytes;
    });
    at += n;
  });
  written_ = at;
  out_->written.store(written_, std::memory_order_release);
  changed_ |= count > 0;
  return count;
}

Result<size_t> ShmLink::read(std::span<const iovec> parts) {
  const uint64_t held = in_->written.load(std::memory_order_acquire) - read_;
  if (held > kRingBytes) return broken();
  const uint64_t until =
      borrower_.next_at().value_or(~uint64_t{0});  // read after `held`, so not older
  if (until == read_) {
    CFT_ASSIGN(const size_t taken, borrower_.take(parts.back()));
    changed_ |= !borrower_.reading();
    return taken;
  }
  if (until < read_) return broken();
  const size_t count = std::min<uint64_t>({total(parts), held, until - read_, kRingChunk});
  const size_t rest = total(parts);
  uint64_t at = read_;
  for_parts(parts, count, [&](std::byte* to, size_t n) {
    in_->for_range(at, n, [&](const std::byte* from, size_t bytes) {
      copy_message(to, from, bytes, rest);
      to += bytes;
    });
    at += n;
  });
  read_ = at;
  in_->read.store(read_, std::memory_order_release);
  changed_ |= count > 0;
  return count;
}

Result<const std::byte*> ShmLink::borrow(size_t bytes) {
  if (borrower_.next_at() != read_) return nullptr;
  return borrower_.borrow(bytes);
}

Status ShmLink::give_back() {
  changed_ = true;
  return borrower_.give_back();
}

bool ShmLink::may_sleep(bool writes, bool reads) {
  shared_->asleep[side_].store(1, std::memory_order_relaxed);
  shared_fence(std::memory_order_seq_cst);
  const bool room = !no_slot_ && written_ - out_->read.load(std::memory_order_acquire) < kRingBytes;
  const bool bytes =
      in_->written.load(std::memory_order_acquire) != read_ || borrower_.next_at() == read_;
  return !(writes && room) && !(reads && bytes) && !lender_.news();
}

void ShmLink::woke() { shared_->asleep[side_].store(0, std::memory_order_relaxed); }

bool ShmLink::must_wake_peer() {
  if (!std::exchange(changed_, false)) return false;
  shared_fence(std::memory_order_seq_cst);
  SharedWord<uint32_t>& asleep = shared_->asleep[1 - side_];
  return asleep.load(std::memory_order_relaxed) != 0 && asleep.exchange(0) != 0;
}

}  // namespace cafetiere
