// SPDX-License-Identifier: Apache-2.0
#include "core/data/table_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/base/elementary.h"
#include "core/data/raw_cell.h"

namespace cafetiere {
namespace {

using TableColumn = caffe::TableDataParameter::Column;

constexpr int kReserved = 2;  // first indices of a CATEGORY: missing, not listed
constexpr double kMicrosOfDay = 86'400e6;
constexpr double kMostDays = 365.25 * 30'000;  // years in <chrono> have 16 bits

int64_t is_flagged(const TableColumn& column) { return column.missing_flag() ? 1 : 0; }

/// Writes sine and cosine of a fraction of a period.
float* put_phase(double share, float* out) {
  const double angle = 2 * std::numbers::pi * share;
  *out++ = float(elementary::cos(angle - std::numbers::pi / 2));
  *out++ = float(elementary::cos(angle));
  return out;
}

/// The position of a date, in days since 1970, within its year, from 0 to 1.
double share_of_year(double days) {
  using namespace std::chrono;
  const sys_days day{std::chrono::days(int(std::floor(days)))};
  const year y = year_month_day(day).year();
  const sys_days first = y / January / 1, next = (y + years(1)) / January / 1;
  const double into = double((day - first).count()) + (days - std::floor(days));
  return into / double((next - first).count());
}

Status missing_target() {
  return invalid_argument("the label is missing; drop such rows, or fill it");
}

double scaled(const TableColumn& column, int i, double x) {
  return column.mean_size() == 0 ? x : (x - column.mean(i)) * column.scale(i);
}

/// Whether a WEIGHT has two scales per label of FLAGS: for 0 and for 1.
bool is_of_flags(const TableColumn& column) {
  return column.kind() == TableColumn::WEIGHT && column.value_size() == 0 &&
         column.scale_size() == 2 * int(column.size());
}

Status check_lists(const TableColumn& column) {
  const int size = int(column.size());
  const TableColumn::Kind kind = column.kind();
  const bool several = kind == TableColumn::NUMBER || kind == TableColumn::FLAGS ||
                       kind == TableColumn::CATEGORY || is_of_flags(column);
  if (size < 1 || (!several && size != 1)) {
    return invalid_argument(fmt::format(
        "column '{}': size {} of kind {}; only NUMBER, FLAGS and CATEGORY have more than one",
        column.name(), size, TableColumn::Kind_Name(column.kind())));
  }
  if (is_of_flags(column) || kind == TableColumn::IMAGE) return {};
  if (kind == TableColumn::WEIGHT) {
    if (column.value_size() > 0 ? column.scale_size() == column.value_size()
                                : column.scale_size() <= 1) {
      return {};
    }
    return invalid_argument(fmt::format("column '{}': {} scales for {} values of a WEIGHT",
                                        column.name(), column.scale_size(), column.value_size()));
  }
  if (column.mean_size() != column.scale_size() ||
      (column.mean_size() != 0 && column.mean_size() != size)) {
    return invalid_argument(
        fmt::format("column '{}': {} means and {} scales for {} numbers in a cell", column.name(),
                    column.mean_size(), column.scale_size(), size));
  }
  return {};
}

}  // namespace

int64_t encoded_size(const TableColumn& column) {
  switch (column.kind()) {
    case TableColumn::CATEGORY:
      return int64_t(column.size());
    case TableColumn::NUMBER:
      return int64_t(column.size()) + is_flagged(column);
    case TableColumn::FLAGS:
    case TableColumn::WEIGHT:
      return int64_t(column.size());
    case TableColumn::ONE_HOT:
      return column.value_size() + kReserved;
    case TableColumn::IMAGE:
      return std::accumulate(column.shape().begin(), column.shape().end(), int64_t{1},
                             std::multiplies<>());
    case TableColumn::DATE:
      return 5 + is_flagged(column);
    case TableColumn::TIMESTAMP:
      return 7 + is_flagged(column);
    default:
      return 1;
  }
}

Result<TableEncoder> TableEncoder::make(const caffe::TableDataParameter::TableTop& top,
                                        const RowSchema& schema, bool lenient) {
  TableEncoder encoder;
  for (const TableColumn& column : top.column()) {
    CFT_TRY(check_lists(column));
    const bool required = top.target() && !lenient;
    Binding binding{
        column, -1, nullptr, nullptr, encoded_size(column), lenient, required, is_of_flags(column)};
    if (column.kind() == TableColumn::IMAGE) {
      CFT_ASSIGN(ImageEncoder image, ImageEncoder::make(column));
      binding.image = std::make_shared<const ImageEncoder>(std::move(image));
    }
    const Result<int> place = schema.find(column.name());
    if (!place.ok() && !lenient) return place.status();
    if (place.ok()) binding.place = *place;
    const bool is_target =
        column.kind() == TableColumn::CLASS || column.kind() == TableColumn::WEIGHT;
    const int first = is_target ? 0 : kReserved;
    auto values = std::make_shared<Places>();
    for (int i = 0; i < column.value_size(); ++i) values->emplace(column.value(i), first + i);
    binding.values = std::move(values);
    binding.column.clear_value();
    encoder.size_ += binding.size;
    encoder.bindings_.push_back(std::move(binding));
  }
  return encoder;
}

Status TableEncoder::encode(const RowSchema& schema, Row row, float* out) const {
  RowCells cells(schema, row);
  for (const Binding& binding : bindings_) {
    if (binding.place < 0) {
      std::fill_n(out, binding.size, 0.f);
    } else {
      const Status status = encode_column(binding, cells.cell(binding.place), out);
      if (!status.ok()) {
        return status.with_context(
            fmt::format("column \"{}\", {}", binding.column.name(), schema.describe_row(row)));
      }
    }
    out += binding.size;
  }
  return {};
}

Status TableEncoder::encode_column(const Binding& binding, const Cell& cell, float* out) const {
  const TableColumn::Kind kind = binding.column.kind();
  if (kind == TableColumn::CATEGORY && binding.size > 1) return encode_values(binding, cell, out);
  if (kind == TableColumn::CATEGORY || kind == TableColumn::ONE_HOT || kind == TableColumn::CLASS) {
    return encode_value(binding, cell, out);
  }
  const bool is_flags = kind == TableColumn::FLAGS, is_weight = kind == TableColumn::WEIGHT;
  if (binding.lenient && (is_flags || is_weight)) {
    std::fill_n(out, binding.size, 0.F);
    return {};
  }
  if (is_weight && !binding.of_flags) return encode_weight(binding, cell, out);
  if (is_missing(cell) && binding.required) return missing_target();
  if (is_missing(cell)) {
    encode_missing(binding, out);
    return {};
  }
  if (binding.image) return binding.image->encode(cell, out);
  if (cell.type == ColumnType::kString) {
    return invalid_argument(fmt::format("{} is text where a number is wanted", cell.describe()));
  }
  if (cell.values() != int64_t(binding.column.size())) {
    return invalid_argument(fmt::format("{} values, but those trained on have {}", cell.values(),
                                        binding.column.size()));
  }
  if (is_flags || is_weight) return encode_flags(binding, cell, out);
  return encode_numbers(binding, cell, out);
}

Status TableEncoder::encode_flags(const Binding& binding, const Cell& cell, float* out) const {
  const TableColumn& column = binding.column;
  for (int i = 0; i < int(cell.values()); ++i) {
    CFT_ASSIGN(out[i], flag_at(cell, i));
    if (column.kind() == TableColumn::WEIGHT) {
      out[i] = float(column.scale(2 * i + (out[i] > 0 ? 1 : 0)));
    }
  }
  return {};
}

Status TableEncoder::encode_weight(const Binding& binding, const Cell& cell, float* out) const {
  const TableColumn& column = binding.column;
  if (!binding.values->empty()) {
    std::string room;
    const auto found =
        is_missing(cell) ? binding.values->end() : binding.values->find(category_of(cell, room));
    if (found == binding.values->end()) {
      return invalid_argument(fmt::format("{} has no weight: it is none of the {} classes",
                                          cell.describe(), binding.values->size()));
    }
    *out = float(column.scale(found->second));
    return {};
  }
  CFT_ASSIGN(const double weight, weight_of(cell));
  *out = float(column.scale_size() > 0 ? weight * column.scale(0) : weight);
  return {};
}

void TableEncoder::encode_missing(const Binding& binding, float* out) const {
  std::fill_n(out, binding.size, 0.f);
  if (binding.column.missing_flag()) out[binding.size - 1] = 1;
}

Status TableEncoder::encode_numbers(const Binding& binding, const Cell& cell, float* out) const {
  const TableColumn& column = binding.column;
  const bool is_time = column.kind() == TableColumn::TIMESTAMP;
  bool gap = false;
  double days = 0;
  for (int i = 0; i < int(column.size()); ++i) {
    const double x = number_at(cell, i);
    days = is_time ? x / kMicrosOfDay : x;
    if (std::isnan(x)) gap = true;
    const double value = std::isnan(x) ? 0 : scaled(column, i, x);
    if (!std::isfinite(float(value))) {
      return invalid_argument(fmt::format(
          "value {} is {}; a net needs finite numbers, so drop or fill such rows", i, x));
    }
    *out++ = float(value);
  }
  if (column.kind() != TableColumn::NUMBER) {
    if (std::abs(days) > kMostDays) {
      return invalid_argument(fmt::format("{} days from 1970 are no date", days));
    }
    out = put_phase(share_of_year(days), out);
    const double week = days / 7;
    out = put_phase(week - std::floor(week), out);
    if (is_time) out = put_phase(days - std::floor(days), out);
  }
  if (gap && binding.required) return missing_target();
  if (column.missing_flag()) *out = gap ? 1.f : 0.f;
  return {};
}

/// The place of a value, or -1. 1.0 is 1 where only that was learned: as such pandas writes whole
/// numbers of a column with gaps.
int TableEncoder::place_of(const Places& values, std::string_view text) {
  auto found = values.find(text);
  if (found == values.end() && text.ends_with(".0")) {
    found = values.find(text.substr(0, text.size() - 2));
  }
  return found == values.end() ? -1 : found->second;
}

Status TableEncoder::encode_values(const Binding& binding, const Cell& cell, float* out) const {
  std::fill_n(out, binding.size, 0.f);
  int64_t taken = 0;
  return each_value(cell, [&](std::string_view value) -> Status {
    if (taken == binding.size) return {};
    const int place = place_of(*binding.values, value);
    out[taken++] = place < 0 ? 1.F : float(place);
    return {};
  });
}

Status TableEncoder::encode_value(const Binding& binding, const Cell& cell, float* out) const {
  std::string room;
  int place = 0;  // missing
  const bool is_class = binding.column.kind() == TableColumn::CLASS;
  if (!is_missing(cell)) {
    place = place_of(*binding.values, category_of(cell, room));
    if (place < 0 && !is_class) place = 1;
  } else if (is_class) {
    place = -1;
  }
  if (place < 0 && binding.lenient) place = 0;
  if (place < 0) {
    return invalid_argument(fmt::format("the label {} is none of the {} classes trained on",
                                        cell.describe(), binding.values->size()));
  }
  if (binding.column.kind() != TableColumn::ONE_HOT) {
    *out = float(place);
  } else {
    std::fill_n(out, binding.size, 0.f);
    out[place] = 1;
  }
  return {};
}

}  // namespace cafetiere
