// SPDX-License-Identifier: Apache-2.0
// ByteStore: memory for many small byte arrays, without an allocation for each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/data/row_budget.h"

namespace cafetiere {

/// Allocates from large anonymous mappings, all but a small first one in huge pages: a page fault
/// per 4 KiB would cost more than copying the rows. Bytes beyond the budget go to mapped files.
/// Addresses stay valid until the store is destroyed, even if it is moved. Nothing is freed
/// individually.
class ByteStore {
 public:
  /// Without a budget, everything is in memory.
  explicit ByteStore(std::shared_ptr<RowBudget> budget = nullptr) : budget_(std::move(budget)) {}
  ~ByteStore();
  /// The moved-from store is empty and keeps its budget.
  ByteStore(ByteStore&& other) noexcept;
  ByteStore& operator=(ByteStore&& other) noexcept;

  /// `bytes` of zeroed memory, unaligned.
  Result<std::byte*> allocate(size_t bytes);

  /// Bytes allocated so far.
  uint64_t bytes() const { return bytes_; }
  const std::shared_ptr<RowBudget>& budget() const { return budget_; }

  /// Frees memory allocated before `piece`, as far as possible.
  void release_before(const std::byte* piece);

  /// Whether part of it is in files.
  bool spilled() const;
  /// Announces random access: pieces are read in any order from now on, after read_ahead().
  void expect_any_order() const;
  /// Asks the system to read the pages of a piece before they are needed; it need not be in a file.
  static void read_ahead(std::span<const std::byte> piece);
  /// Unmaps the files' pages from the process, whose size some cluster managers limit. They stay in
  /// the system's page cache, as far as memory allows.
  void unmap_pages() const;

 private:
  struct Block {
    std::byte* data;
    size_t size;
    bool in_file;
    size_t taken = 0;  // from the budget
  };
  Status add_block(size_t at_least, bool in_file);
  /// `page`: alignment; 0 = none
  Status add_memory(size_t size, size_t page);
  void release(const Block& block);
  void release_all();
  void advise(const Block& block, int advice) const;

  std::shared_ptr<RowBudget> budget_;
  std::vector<Block> blocks_;  // the last one is being filled
  size_t used_ = 0;            // of the last block
  uint64_t bytes_ = 0;
};

}  // namespace cafetiere
