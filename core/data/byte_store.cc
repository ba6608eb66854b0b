// SPDX-License-Identifier: Apache-2.0
#include "core/data/byte_store.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cafetiere {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kBlock = size_t{64} << 20;   // address space only; pages are committed when
                                              // touched
constexpr size_t kSmall = size_t{256} << 10;  // small tables do not use huge pages

}  // namespace

ByteStore::~ByteStore() { release_all(); }

ByteStore::ByteStore(ByteStore&& other) noexcept : ByteStore(other.budget_) {
  *this = std::move(other);
}

ByteStore& ByteStore::operator=(ByteStore&& other) noexcept {
  if (this != &other) {
    release_all();
    budget_ = other.budget_;
    blocks_ = std::exchange(other.blocks_, {});
    used_ = std::exchange(other.used_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

Result<std::byte*> ByteStore::allocate(size_t bytes) {
  const bool fits = !blocks_.empty() && blocks_.back().size - used_ >= bytes;
  if (!fits || !blocks_.back().in_file) {
    const bool in_memory = !budget_ || budget_->take(bytes);
    if (!fits || !in_memory) {
      const Status status = add_block(bytes, !in_memory);
      if (!status.ok()) {
        if (in_memory && budget_) budget_->give_back(bytes);
        return status;
      }
    }
    if (in_memory && budget_) blocks_.back().taken += bytes;
  }
  std::byte* piece = blocks_.back().data + used_;
  used_ += bytes;
  bytes_ += bytes;
  return piece;
}

void ByteStore::release_before(const std::byte* piece) {
  const auto holds = [&](const Block& block) {
    return piece >= block.data && piece < block.data + block.size;
  };
  const auto first = std::ranges::find_if(blocks_, holds);
  if (first == blocks_.end()) return;
  std::for_each(blocks_.begin(), first, [&](const Block& block) { release(block); });
  blocks_.erase(blocks_.begin(), first);
}

bool ByteStore::spilled() const { return std::ranges::any_of(blocks_, &Block::in_file); }

void ByteStore::expect_any_order() const {
  for (const Block& block : blocks_) advise(block, MADV_RANDOM);
}

void ByteStore::read_ahead(std::span<const std::byte> piece) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<uintptr_t>(piece.data());
  const uintptr_t first = start / page * page;
  madvise(reinterpret_cast<void*>(first), start + piece.size() - first, MADV_WILLNEED);
}

void ByteStore::unmap_pages() const {
  for (const Block& block : blocks_) advise(block, MADV_DONTNEED);
}

/// Gives advice about files only; failure only costs time.
void ByteStore::advise(const Block& block, int advice) const {
  if (block.in_file) madvise(block.data, block.size, advice);
}

Status ByteStore::add_block(size_t at_least, bool in_file) {
  if (!blocks_.empty()) advise(blocks_.back(), MADV_DONTNEED);  // it is full
  // Files reserve their space at once, so their size grows with the data.
  const size_t usual = in_file ? std::clamp<size_t>(bytes_ / 2, kHugePage, kBlock) : kBlock;
  const size_t size = (std::max(at_least, usual) + kHugePage - 1) / kHugePage * kHugePage;
  if (blocks_.empty() && !in_file && at_least <= kSmall) {
    CFT_TRY(add_memory(kSmall, 0));
  } else if (in_file) {
    CFT_ASSIGN(std::byte* const data, budget_->map_file(size));
    blocks_.push_back({data, size, true});
  } else {
    CFT_TRY(add_memory(size, kHugePage));
  }
  used_ = 0;
  return {};
}

Status ByteStore::add_memory(size_t size, size_t page) {
  // One huge page more than needed, so that an aligned part can be cut out of it.
  void* mapping = mmap(nullptr, size + page, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return {ErrorCode::kOutOfMemory,
            fmt::format("no {} MiB of memory for rows ({} MiB are in use by them): {}; give the "
                        "process more memory or spread the rows over more executors",
                        size >> 20, bytes_ >> 20, std::strerror(errno))};
  }
  auto* start = static_cast<std::byte*>(mapping);
  if (page == 0) {
    blocks_.push_back({start, size, false});
    return {};
  }
  const size_t head = (page - reinterpret_cast<uintptr_t>(start) % page) % page;
  if (head > 0) munmap(start, head);
  munmap(start + head + size, page - head);
  madvise(start + head, size, MADV_HUGEPAGE);  // best effort: failure only costs time
  blocks_.push_back({start + head, size, false});
  return {};
}

void ByteStore::release(const Block& block) {
  munmap(block.data, block.size);
  if (budget_) budget_->give_back(block.taken);
}

void ByteStore::release_all() {
  for (const Block& block : blocks_) release(block);
  blocks_.clear();
}

}  // namespace cafetiere
