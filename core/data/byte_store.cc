// SPDX-License-Identifier: Apache-2.0
#include "core/data/byte_store.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cafetiere {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kBlock = size_t{64} << 20;  // address space only; pages come when touched

}  // namespace

ByteStore::~ByteStore() { release(); }

ByteStore::ByteStore(ByteStore&& other) noexcept
    : blocks_(std::exchange(other.blocks_, {})),
      used_(std::exchange(other.used_, 0)),
      bytes_(std::exchange(other.bytes_, 0)) {}

ByteStore& ByteStore::operator=(ByteStore&& other) noexcept {
  if (this != &other) {
    release();
    blocks_ = std::exchange(other.blocks_, {});
    used_ = std::exchange(other.used_, 0);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

Result<std::byte*> ByteStore::allocate(size_t bytes) {
  if (blocks_.empty() || blocks_.back().size - used_ < bytes) CFT_TRY(add_block(bytes));
  std::byte* piece = blocks_.back().data + used_;
  used_ += bytes;
  bytes_ += bytes;
  return piece;
}

Status ByteStore::add_block(size_t at_least) {
  // One huge page more than needed, so that a part aligned to huge pages can be cut out of it.
  const size_t size = (std::max(at_least, kBlock) + kHugePage - 1) / kHugePage * kHugePage;
  void* mapping = mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return {ErrorCode::kOutOfMemory,
            fmt::format("no {} MiB of memory for rows ({} MiB are in use by them): {}; give the "
                        "process more memory or spread the rows over more executors",
                        size >> 20, bytes_ >> 20, std::strerror(errno))};
  }
  auto* start = static_cast<std::byte*>(mapping);
  const size_t head = (kHugePage - reinterpret_cast<uintptr_t>(start) % kHugePage) % kHugePage;
  if (head > 0) munmap(start, head);
  munmap(start + head + size, kHugePage - head);
  madvise(start + head, size, MADV_HUGEPAGE);  // best effort: failure only costs time
  blocks_.push_back({start + head, size});
  used_ = 0;
  return {};
}

void ByteStore::release() {
  for (const Block& block : blocks_) munmap(block.data, block.size);
  blocks_.clear();
}

}  // namespace cafetiere
