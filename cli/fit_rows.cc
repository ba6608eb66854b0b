// SPDX-License-Identifier: Apache-2.0
#include "cli/fit_rows.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstring>
#include <set>
#include <span>
#include <string_view>

#include "cli/table_cells.h"
#include "core/base/sha256.h"

namespace cafetiere {
namespace {

// As in python/cafetiere/_split.py. What they were chosen on: docs/tables.md.
constexpr double kShare = 0.1;
constexpr int64_t kFewestToStop = 1500, kPatience = 10;

using Row = std::span<const std::byte>;

bool is_held_out(Row row, double validation) {
  const std::string digest = sha256_hex(row);
  uint64_t first = 0;
  std::from_chars(digest.data(), digest.data() + 16, first, 16);
  return first < uint64_t(std::ceil(validation * 0x1p64));
}

/// The bytes of a row's cell: each begins with its size.
std::string_view cell_of(Row row, size_t place) {
  while (true) {
    uint32_t size = 0;
    std::memcpy(&size, row.data(), sizeof size);
    if (place-- == 0) return {reinterpret_cast<const char*>(row.data()), sizeof size + size};
    row = row.subspan(sizeof size + size);
  }
}

Result<std::vector<size_t>> places_of(const CsvTable& table, const std::vector<Column>& columns) {
  std::vector<size_t> places;
  for (const Column& column : columns) {
    CFT_ASSIGN(const size_t place, table.find(column.name));
    places.push_back(place);
  }
  return places;
}

/// Calls `take` with the bytes of each row.
template <class Take>
Status for_each_row(const CsvTable& table, const std::vector<Column>& columns, const Take& take) {
  CFT_ASSIGN(const std::vector<size_t> places, places_of(table, columns));
  std::vector<std::byte> row;
  for (size_t r = 0; r < table.rows(); ++r) {
    row.clear();
    for (size_t i = 0; i < columns.size(); ++i) {
      const Status status = append_cell(columns[i].type, table.cells[places[i]][r], &row);
      if (!status.ok()) {
        return status.with_context(
            fmt::format("{}: column \"{}\", row {}", table.path, columns[i].name, r));
      }
    }
    take(row);
  }
  return {};
}

void append_row(Row row, EncodedRows* rows) {
  ++rows->count;
  rows->chunk.insert(rows->chunk.end(), row.begin(), row.end());
}

/// Whether each row is held back.
std::vector<bool> choose(const std::vector<Row>& rows, const FitTask& task, double validation) {
  std::vector<bool> held_out(rows.size());
  if (validation == 0) return held_out;
  std::set<std::string_view> known;  // the classes of the rows that are trained on
  for (size_t r = 0; r < rows.size(); ++r) {
    held_out[r] = is_held_out(rows[r], validation);
    if (task.classes && !held_out[r]) known.insert(cell_of(rows[r], task.features));
  }
  for (size_t r = 0; task.classes && r < rows.size(); ++r) {
    if (held_out[r] && !known.contains(cell_of(rows[r], task.features))) held_out[r] = false;
  }
  return held_out;
}

Status check_parts(const SplitRows& split, double validation) {
  if (split.train.count == 0) {
    return invalid_argument(
        fmt::format("validation {} holds back all of {} rows: give another share", validation,
                    split.held_out.count));
  }
  if (validation > 0 && split.held_out.count == 0) {
    return invalid_argument(
        fmt::format("validation {} holds back none of {} rows, as too few differ or have a class "
                    "that others have; give another share, or more rows",
                    validation, split.train.count));
  }
  return {};
}

}  // namespace

Result<EncodedRows> encode_rows(const CsvTable& table, const std::vector<Column>& columns) {
  EncodedRows rows;
  CFT_TRY(for_each_row(table, columns, [&](const auto& row) { append_row(row, &rows); }));
  return rows;
}

Result<SplitRows> split_rows(const CsvTable& table, const FitTask& task, const FitFlags& flags) {
  std::vector<size_t> sizes;
  EncodedRows all;
  CFT_TRY(for_each_row(table, task.columns, [&](const auto& row) {
    append_row(row, &all);
    sizes.push_back(row.size());
  }));
  std::vector<Row> rows;
  for (size_t begin = 0; const size_t size : sizes) {
    rows.emplace_back(all.chunk.data() + begin, size);
    begin += size;
  }
  const bool is_asked = flags.validation || flags.patience > 0;
  const double found = is_asked || all.count >= kFewestToHoldBack ? kShare : 0;
  const double validation = flags.validation.value_or(found);
  const std::vector<bool> held_out = choose(rows, task, validation);
  SplitRows split;
  for (size_t r = 0; r < rows.size(); ++r) {
    append_row(rows[r], held_out[r] ? &split.held_out : &split.train);
    if (held_out[r]) split.held_out_places.push_back(r);
  }
  const Status parts = check_parts(split, validation);
  if (parts.ok()) return split;
  if (is_asked) return parts;
  return SplitRows{std::move(all), {}, {}};
}

int64_t patience_of(const FitFlags& flags, const SplitRows& rows) {
  const bool is_enough =
      rows.held_out.count > 0 && rows.train.count + rows.held_out.count >= kFewestToStop;
  return flags.patience.value_or(is_enough ? kPatience : 0);
}

}  // namespace cafetiere
