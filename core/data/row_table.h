// SPDX-License-Identifier: Apache-2.0
// RowTable: rows in order of arrival, in native memory, before they are assigned to shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/base/status.h"
#include "core/data/byte_store.h"
#include "core/data/hash.h"
#include "core/data/row_schema.h"

namespace cafetiere {

/// Calls `use` with the bytes of each of `count` rows, which must fill `chunk` exactly, and with its
/// id, empty if the schema has none. Checks all sizes; an error names row and column, and `use` has
/// been called for the rows before.
Status for_each_row(
    const RowSchema& schema, int64_t count, std::span<const std::byte> chunk,
    const std::function<void(std::span<const std::byte> row, std::span<const std::byte> id)>& use);

/// Encoded rows (row_schema.h) with an index. A row takes its bytes plus 32, without an allocation.
/// Bytes beyond the budget are in files.
class RowTable {
 public:
  explicit RowTable(RowSchema schema, std::shared_ptr<RowBudget> budget = nullptr)
      : schema_(std::move(schema)), store_(std::move(budget)) {}
  /// The moved-from table is empty and keeps its schema and budget.
  RowTable(RowTable&& other);
  RowTable& operator=(RowTable&& other);

  /// Appends `count` rows, which must fill `chunk` exactly. Checks all sizes; an error names row
  /// and column and leaves the table unchanged.
  Status append(int64_t count, std::span<const std::byte> chunk);

  const RowSchema& schema() const { return schema_; }
  int64_t rows() const { return static_cast<int64_t>(rows_.size()); }
  uint64_t bytes() const { return store_.bytes(); }
  const std::shared_ptr<RowBudget>& budget() const { return store_.budget(); }

  /// The encoded bytes of row i; valid as long as the table, or the store its memory is moved to.
  std::span<const std::byte> row(int64_t i) const { return rows_[static_cast<size_t>(i)]; }
  Cell cell(int64_t i, int column) const { return schema_.cell(row(i), column); }

  /// The identity of row i, the same on every rank: a hash of the id column, or of all bytes.
  const Hash128& identity(int64_t i) const { return identities_[static_cast<size_t>(i)]; }

  /// Frees the memory of rows before row i, as far as possible; their spans become invalid.
  void release_before(int64_t i);

  /// Unmaps pages read from files; the system may keep them in its cache.
  void unmap_pages() const { store_.unmap_pages(); }

  /// Transfers the rows' memory to the caller; the table is empty afterwards, row() spans stay
  /// valid.
  ByteStore take_store();

 private:
  Status parse_rows(int64_t count, std::span<const std::byte> chunk);

  RowSchema schema_;
  ByteStore store_;
  std::vector<std::span<const std::byte>> rows_;
  std::vector<Hash128> identities_;
};

}  // namespace cafetiere
