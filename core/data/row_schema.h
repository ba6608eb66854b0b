// SPDX-License-Identifier: Apache-2.0
// RowSchema: the columns of a table of rows, and how an encoded row is read.
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

/// "u8", "i32", ...: the names used in a schema's JSON.
std::string_view column_type_name(ColumnType type);
/// Bytes of one value; 1 for strings.
size_t column_type_bytes(ColumnType type);

struct Column {
  std::string name;
  ColumnType type;
  bool resize = false;  ///< its encoded images are resized to the net's input
};

/// One column of one row: the values' bytes, unaligned, little-endian.
struct Cell {
  ColumnType type;
  std::span<const std::byte> bytes;

  /// Numbers in it; a string is one value.
  int64_t values() const {
    return type == ColumnType::kString
               ? 1
               : static_cast<int64_t>(bytes.size() / column_type_bytes(type));
  }
  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  /// For messages: the first values, or the string in quotes, shortened.
  std::string describe() const;
};

/// A row is its columns in order; each column is a uint32 (little-endian) number of payload bytes,
/// then the payload.
struct RowSchema {
  std::vector<Column> columns;
  int id = -1;  ///< the column that identifies a row, or -1: all its bytes do

  /// Reads {"columns": [{"name": "image", "type": "u8"}, ...], "id": "name" or ""}; a column may
  /// also have "resize": true.
  static Result<RowSchema> parse(std::string_view json);

  /// The index of a column; the error lists those that exist.
  Result<int> find(std::string_view name) const;

  /// Column `column` of an encoded row that append() has accepted.
  Cell cell(std::span<const std::byte> row, int column) const;

  /// "id 42" for messages, or "the row with hash 0x..." when the schema has no id column.
  std::string describe_row(std::span<const std::byte> row) const;

  /// Names, types and id as one text; equal schemas have equal texts.
  std::string signature() const;
};

/// The payload size in front of a column; `at` need not be aligned.
inline uint32_t load_size(const std::byte* at) {
  uint32_t size;
  std::memcpy(&size, at, sizeof size);
  return size;
}

}  // namespace cafetiere
