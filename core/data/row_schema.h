// SPDX-License-Identifier: Apache-2.0
// RowSchema: the columns of a table of rows, and the format of an encoded row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

enum class ColumnType { kU8, kI32, kI64, kF32, kF64, kString };

/// "u8", "i32", ...: the type names in a schema's JSON.
std::string_view column_type_name(ColumnType type);
/// Bytes of one value; 1 for strings.
size_t column_type_bytes(ColumnType type);

struct Column {
  std::string name;
  ColumnType type;
  bool resize = false;  ///< encoded images are resized to the net's input
};

/// A column of a row: the bytes of its values, unaligned and little-endian.
struct Cell {
  ColumnType type;
  std::span<const std::byte> bytes;

  /// The number of values; a string is one value.
  int64_t values() const {
    return type == ColumnType::kString
               ? 1
               : static_cast<int64_t>(bytes.size() / column_type_bytes(type));
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// A description for messages: the first values, or the string in quotes, shortened.
  std::string describe() const;
};

/// A row consists of its columns in order; each column is the number of payload bytes as a
/// little-endian uint32, then the payload.
struct RowSchema {
  std::vector<Column> columns;
  int id = -1;  ///< the column that identifies a row; -1: the bytes of the whole row do

  /// Parses {"columns": [{"name": "image", "type": "u8"}, ...], "id": "name" or ""}; a column may
  /// also have "resize": true.
  static Result<RowSchema> parse(std::string_view json);

  /// The index of a column; the error lists the existing ones.
  Result<int> find(std::string_view name) const;

  /// Column `column` of an encoded row that append() has accepted.
  Cell cell(std::span<const std::byte> row, int column) const;

  /// "id 42" for messages, or "the row with hash 0x..." if the schema has no id column.
  std::string describe_row(std::span<const std::byte> row) const;

  /// Names, types and id as one string; equal schemas have equal strings.
  std::string signature() const;
};

/// The cells of one encoded row. Asked for in the order of the columns, all of them take one pass
/// over the row, which a wide table needs.
class RowCells {
 public:
  RowCells(const RowSchema& schema, std::span<const std::byte> row)
      : schema_(schema), row_(row), at_(row.data()) {}

  Cell cell(int column);

 private:
  const RowSchema& schema_;
  const std::span<const std::byte> row_;
  const std::byte* at_;  // of column next_
  int next_ = 0;
};

/// The payload size before a column; `at` need not be aligned.
inline uint32_t load_size(const std::byte* at) {
  uint32_t size;
  std::memcpy(&size, at, sizeof size);
  return size;
}

}  // namespace cafetiere
