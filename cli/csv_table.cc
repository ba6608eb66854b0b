// SPDX-License-Identifier: Apache-2.0
#include "cli/csv_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/csv.h"
#include "cli/table_cells.h"
#include "core/data/table_values.h"
#include "core/model/nearest.h"

namespace cafetiere {
namespace {

constexpr ptrdiff_t kMostNames = 30;  // of columns, in an error
constexpr size_t kMostClasses = 20;  // of a label of numbers, unless one says that it names classes

constexpr ColumnType kFoundTypes[] = {ColumnType::kF64, ColumnType::kI32, ColumnType::kI64};

/// For a head of one cell in which something else seems to separate the names; else "".
std::string_view separator_hint(const std::vector<std::string>& names) {
  const bool has_another = names.size() == 1 && names[0].find_first_of(";\t|") != std::string::npos;
  return has_another ? "; the cells of a CSV are separated by commas" : "";
}

Status read_rows(CsvReader& csv, CsvTable* table) {
  CFT_ASSIGN(table->names, csv.head());
  table->cells.resize(table->names.size());
  std::vector<std::string> row;
  while (true) {
    CFT_ASSIGN(const bool more, csv.next(&row));
    if (!more) return {};
    if (row.size() != table->names.size()) {
      return invalid_argument(fmt::format("line {}: {} cells, and the head has {}{}", csv.line(),
                                          row.size(), table->names.size(),
                                          separator_hint(table->names)));
    }
    for (size_t i = 0; i < row.size(); ++i) table->cells[i].push_back(std::move(row[i]));
  }
}

bool reads_as(ColumnType type, const std::string& cell) {
  if (type == ColumnType::kF64) return cell.empty() || number_of(cell);  // true is a text
  std::vector<std::byte> read;
  return append_cell(type, cell, &read).ok();
}

bool can_be(ColumnType type, const CsvTable::Cells& cells) {
  return std::ranges::all_of(cells, [&](const std::string& cell) { return reads_as(type, cell); });
}

/// Whether doubles may read a number as they read the next.
bool is_beyond_doubles(const std::string& cell) {
  const double value = std::abs(number_of(cell).value_or(0));
  return value >= 0x1p53 && std::isfinite(value);
}

}  // namespace

std::string no_column_text(std::string_view name, const std::vector<std::string>& names) {
  const auto shown = std::min<ptrdiff_t>(std::ssize(names), kMostNames);
  std::string there = fmt::format("{}", fmt::join(names.begin(), names.begin() + shown, ", "));
  if (shown < std::ssize(names)) there += fmt::format(" and {} more", std::ssize(names) - shown);
  there += separator_hint(names);
  return fmt::format("there is no column \"{}\"; there are {}{}", name, there,
                     did_you_mean(name, names));
}

Result<size_t> CsvTable::find(std::string_view name) const {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return size_t(found - names.begin());
  return not_found(fmt::format("{}: {}", path, no_column_text(name, names)));
}

Result<CsvTable> read_csv_table(const std::string& path) {
  CFT_ASSIGN(std::ifstream file, open_csv(path, "fit"));
  CsvReader csv(file);
  CsvTable table;
  table.path = path;
  CFT_TRY(read_rows(csv, &table).with_context(path));
  return table;
}

ColumnType found_type(const CsvTable::Cells& cells) {
  for (const ColumnType type : kFoundTypes) {
    if (can_be(type, cells)) return type;
  }
  return ColumnType::kString;
}

ColumnType class_type(const CsvTable::Cells& cells) {
  const ColumnType found = found_type(cells);
  const bool are_texts = found == ColumnType::kF64 && std::ranges::any_of(cells, is_beyond_doubles);
  return are_texts ? ColumnType::kString : found;
}

std::optional<size_t> odd_cell(const CsvTable::Cells& cells) {
  const auto there = std::ssize(cells) - std::ranges::count(cells, "");
  for (const ColumnType type : kFoundTypes) {
    const auto is_odd = [&](const std::string& cell) { return !reads_as(type, cell); };
    const auto first = std::ranges::find_if(cells, is_odd);
    ptrdiff_t odd = 0;
    for (auto cell = first; cell != cells.end() && 10 * odd <= there; ++cell) odd += is_odd(*cell);
    if (odd > 0 && 10 * odd <= there) return size_t(first - cells.begin());
  }
  return {};
}

std::string class_text(const std::string& cell) {
  const std::optional<double> number = number_of(cell);
  // -0 is 0.
  return number && !is_beyond_doubles(cell) ? fmt::format("{}", *number + 0) : cell;
}

bool are_classes(const CsvTable::Cells& cells) {
  if (found_type(cells) != ColumnType::kF64) return true;
  std::set<std::string> values;
  for (const std::string& cell : cells) {
    if (cell.empty()) continue;
    const double value = number_of(cell).value_or(0);
    if (!std::isfinite(value) || value != std::floor(value)) return false;
    values.insert(class_text(cell));
    if (values.size() > kMostClasses) return false;
  }
  return true;
}

}  // namespace cafetiere
