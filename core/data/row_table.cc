// SPDX-License-Identifier: Apache-2.0
#include "core/data/row_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace cafetiere {
namespace {

constexpr uint64_t kRowSeed = 0;  // id columns use 1 + type, so that the hashes of ids and of rows
                                  // differ

std::string where(int64_t row, const Column& column) {
  return fmt::format("row {} of the chunk, column \"{}\"", row, column.name);
}

/// Checks the column at `at`, with `left` bytes remaining; returns its size including the prefix.
Result<size_t> column_size(const std::byte* at, size_t left, const Column& column, int64_t row) {
  if (left < sizeof(uint32_t)) {
    return invalid_argument(
        fmt::format("{}: the chunk ends inside the size of the column ({} bytes left); pass whole "
                    "rows and their true number",
                    where(row, column), left));
  }
  const size_t payload = load_size(at);
  if (payload > left - sizeof(uint32_t)) {
    return invalid_argument(
        fmt::format("{}: its size is {} bytes, but only {} are left in the "
                    "chunk; pass whole rows in the schema's column order",
                    where(row, column), payload, left - sizeof(uint32_t)));
  }
  const size_t value = column_type_bytes(column.type);
  if (payload % value != 0) {
    return invalid_argument(fmt::format(
        "{}: {} bytes are not a whole number of {} values ({} bytes each); check the column's type",
        where(row, column), payload, column_type_name(column.type), value));
  }
  return sizeof(uint32_t) + payload;
}

Status check_count(const RowSchema& schema, int64_t count, std::span<const std::byte> chunk) {
  const size_t least = schema.columns.size() * sizeof(uint32_t);
  if (count >= 0 && static_cast<uint64_t>(count) <= chunk.size() / least) return {};
  return invalid_argument(fmt::format(
      "a chunk of {} bytes cannot hold {} rows of {} columns; each column needs at least 4 bytes",
      chunk.size(), count, schema.columns.size()));
}

}  // namespace

Status for_each_row(
    const RowSchema& schema, int64_t count, std::span<const std::byte> chunk,
    const std::function<void(std::span<const std::byte> row, std::span<const std::byte> id)>& use) {
  CFT_TRY(check_count(schema, count, chunk));
  const std::byte* at = chunk.data();
  const std::byte* const end = at + chunk.size();
  for (int64_t row = 0; row < count; ++row) {
    const std::byte* const start = at;
    std::span<const std::byte> id;
    for (size_t c = 0; c < schema.columns.size(); ++c) {
      CFT_ASSIGN(const size_t size,
                 column_size(at, static_cast<size_t>(end - at), schema.columns[c], row));
      if (static_cast<int>(c) == schema.id) id = {at + sizeof(uint32_t), size - sizeof(uint32_t)};
      at += size;
    }
    use({start, at}, id);
  }
  if (at != end) {
    return invalid_argument(
        fmt::format("{} bytes follow the last of {} rows in the chunk; pass the rows' true number",
                    end - at, count));
  }
  return {};
}

RowTable::RowTable(RowTable&& other)
    : schema_(other.schema_),
      store_(std::move(other.store_)),
      rows_(std::exchange(other.rows_, {})),
      identities_(std::exchange(other.identities_, {})) {}

RowTable& RowTable::operator=(RowTable&& other) {
  schema_ = other.schema_;
  store_ = std::move(other.store_);
  rows_ = std::exchange(other.rows_, {});
  identities_ = std::exchange(other.identities_, {});
  return *this;
}

Status RowTable::append(int64_t count, std::span<const std::byte> chunk) {
  const size_t before = rows_.size();
  const Status status = parse_rows(count, chunk);
  if (!status.ok()) {
    rows_.resize(before);
    identities_.resize(before);
  }
  return status;
}

Status RowTable::parse_rows(int64_t count, std::span<const std::byte> chunk) {
  CFT_TRY(check_count(schema_, count, chunk));
  // Growing by at least half avoids copying the index for every small chunk.
  const size_t before = rows_.size(), needed = before + static_cast<size_t>(count);
  if (needed > rows_.capacity()) {
    rows_.reserve(std::max(needed, before + before / 2));
    identities_.reserve(std::max(needed, before + before / 2));
  }
  CFT_ASSIGN(std::byte* const base, store_.allocate(chunk.size()));
  // Copies and hashes one row at a time, while its bytes are in the cache.
  return for_each_row(schema_, count, chunk, [&](std::span<const std::byte> row, auto id) {
    std::byte* const kept = base + (row.data() - chunk.data());
    std::memcpy(kept, row.data(), row.size());
    rows_.emplace_back(kept, row.size());
    if (schema_.id < 0) {
      identities_.push_back(hash128(row, kRowSeed));
    } else {
      const ColumnType type = schema_.columns[static_cast<size_t>(schema_.id)].type;
      identities_.push_back(hash128(id, 1 + static_cast<uint64_t>(type)));
    }
  });
}

void RowTable::release_before(int64_t i) {
  if (i < rows()) store_.release_before(row(i).data());
}

ByteStore RowTable::take_store() {
  rows_.clear();
  rows_.shrink_to_fit();
  identities_.clear();
  identities_.shrink_to_fit();
  return std::move(store_);
}

}  // namespace cafetiere
