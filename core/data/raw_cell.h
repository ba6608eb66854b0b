// SPDX-License-Identifier: Apache-2.0
// Unconverted cells of a table, whose values may be missing or text.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "core/data/row_schema.h"

namespace cafetiere {

/// Number i of a numeric cell as a double; integers beyond 2^53 are rounded.
inline double number_at(const Cell& cell, int64_t i) {
  const auto load = [&]<class T>(T value) {
    std::memcpy(&value, cell.bytes.data() + size_t(i) * sizeof value, sizeof value);
    return double(value);
  };
  switch (cell.type) {
    case ColumnType::kU8:
      return load(uint8_t{});
    case ColumnType::kI32:
      return load(int32_t{});
    case ColumnType::kI64:
      return load(int64_t{});
    case ColumnType::kF32:
      return load(float{});
    default:
      return load(double{});
  }
}

/// Whether a cell has no value: no bytes, or a single NaN.
inline bool is_missing(const Cell& cell) {
  if (cell.bytes.empty()) return true;
  const bool real = cell.type == ColumnType::kF32 || cell.type == ColumnType::kF64;
  return real && cell.values() == 1 && std::isnan(number_at(cell, 0));
}

/// The weight of a row in a loss: a finite, non-negative number.
inline Result<double> weight_of(const Cell& cell) {
  if (is_missing(cell))
    return invalid_argument("the weight is missing; drop such rows, or fill it");
  if (cell.type == ColumnType::kString || cell.values() != 1) {
    return invalid_argument(fmt::format("{} is no weight, which is one number", cell.describe()));
  }
  const double weight = number_at(cell, 0);
  if (weight >= 0 && std::isfinite(float(weight))) return weight;
  return invalid_argument(fmt::format("the weight {} is not a finite number of 0 or more", weight));
}

/// Number i of a cell of flags: 0 or 1.
inline Result<float> flag_at(const Cell& cell, int64_t i) {
  const double flag = number_at(cell, i);
  if (flag == 0 || flag == 1) return float(flag);
  return invalid_argument(
      fmt::format("value {} is {}; a label of several classes has a 1 for each "
                  "that holds and a 0 for the others",
                  i, flag));
}

/// The text by which a value is listed as a category: numbers in their shortest decimal form, equal
/// for all types. `room` provides storage for the text of a number.
inline std::string_view category_of(const Cell& cell, std::string& room) {
  if (cell.type == ColumnType::kString) return cell.text();
  if (cell.type == ColumnType::kI64) {
    int64_t value;  // not every integer is a double
    std::memcpy(&value, cell.bytes.data(), sizeof value);
    room = fmt::format("{}", value);
  } else {
    const double value = number_at(cell, 0);
    const bool whole = std::abs(value) < 0x1p53 && value == std::floor(value);
    if (cell.type == ColumnType::kF32 && !whole)
      room = fmt::format("{}", float(value));
    else
      room = whole ? fmt::format("{}", int64_t(value)) : fmt::format("{}", value);
  }
  return room;
}

/// Terminates each value of a cell with several texts.
inline constexpr char kTextEnd = '\x1f';

/// Calls `take` with each value of a cell with several values, as from category_of(); skips empty
/// texts.
template <class Take>
Status each_value(const Cell& cell, const Take& take) {
  std::string room;
  if (cell.type != ColumnType::kString) {
    const size_t width = column_type_bytes(cell.type);
    for (size_t at = 0; at + width <= cell.bytes.size(); at += width) {
      CFT_TRY(take(category_of({cell.type, cell.bytes.subspan(at, width)}, room)));
    }
    return {};
  }
  for (std::string_view rest = cell.text(); !rest.empty();) {
    const size_t end = std::min(rest.find(kTextEnd), rest.size());
    if (end > 0) CFT_TRY(take(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return {};
}

}  // namespace cafetiere
