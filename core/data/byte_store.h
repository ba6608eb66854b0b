// SPDX-License-Identifier: Apache-2.0
// ByteStore: memory for many small byte arrays without an allocation for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

/// Allocates from large anonymous mappings in huge pages: a page fault every 4 KiB would cost more
/// than copying the rows. Addresses stay valid until the store is destroyed, also when it is moved.
/// Nothing is freed individually.
class ByteStore {
 public:
  ByteStore() = default;
  ~ByteStore();
  ByteStore(ByteStore&& other) noexcept;
  ByteStore& operator=(ByteStore&& other) noexcept;

  /// `bytes` of zeroed memory, without alignment.
  Result<std::byte*> allocate(size_t bytes);

  /// Bytes allocated so far.
  uint64_t bytes() const { return bytes_; }

 private:
  struct Block {
    std::byte* data;
    size_t size;
  };
  Status add_block(size_t at_least);
  void release();

  std::vector<Block> blocks_;  // the last one is being filled
  size_t used_ = 0;            // of the last block
  uint64_t bytes_ = 0;
};

}  // namespace cafetiere
