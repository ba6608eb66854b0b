// SPDX-License-Identifier: Apache-2.0
// A CSV as a table of columns, and what is found of their types by reading it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/status.h"
#include "core/data/row_schema.h"

namespace cafetiere {

struct CsvTable {
  using Cells = std::vector<std::string>;

  std::string path;
  std::vector<std::string> names;
  std::vector<Cells> cells;  ///< by column; "" is a gap

  size_t rows() const { return cells.front().size(); }
  /// The place of a column; the error lists those that are there.
  Result<size_t> find(std::string_view name) const;
};

/// Says that a table has no such column, and which it has.
std::string no_column_text(std::string_view name, const std::vector<std::string>& names);

/// Reads a CSV whose first line names the columns. Errors name the file and the line.
Result<CsvTable> read_csv_table(const std::string& path);

/// The first type that all cells can be read as: a number, a date, a moment, else a text.
ColumnType found_type(const CsvTable::Cells& cells);

/// The type that a column is read as whose cells name classes or categories: that which is found, but
/// numbers of which a double does not tell each from the next are texts.
ColumnType class_type(const CsvTable::Cells& cells);

/// The class that a cell names: 1.0 is 1.
std::string class_text(const std::string& cell);

/// The place of the first cell that is neither a number nor empty, or no date or no moment, where at least
/// nine of ten cells are; none if fewer are.
std::optional<size_t> odd_cell(const CsvTable::Cells& cells);

/// Whether a label of such cells names classes: texts and dates do, and few whole numbers.
bool are_classes(const CsvTable::Cells& cells);

}  // namespace cafetiere
