#include "core/data/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

namespace cafetiere {
namespace {

template <class T>
void to_floats(std::span<const std::byte> bytes, float* out) {
  const size_t count = bytes.size() / sizeof(T);
  for (size_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = static_cast<float>(value);
  }
}

/// Reads a whole text as one number, blanks around it allowed; false when it is none.
bool parse_number(std::string_view text, float* out) {
  constexpr std::string_view kBlank = " \t\r\n";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return false;
  text = text.substr(first, text.find_last_not_of(kBlank) - first + 1);
  if (text.front() == '+') text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

/// False when the cell is a text that is no number.
bool convert(const Cell& cell, float* out) {
  switch (cell.type) {
    case ColumnType::kU8:
      to_floats<uint8_t>(cell.bytes, out);
      return true;
    case ColumnType::kI32:
      to_floats<int32_t>(cell.bytes, out);
      return true;
    case ColumnType::kI64:
      to_floats<int64_t>(cell.bytes, out);
      return true;
    case ColumnType::kF32:
      to_floats<float>(cell.bytes, out);
      return true;
    case ColumnType::kF64:
      to_floats<double>(cell.bytes, out);
      return true;
    case ColumnType::kString:
      return parse_number(cell.text(), out);
  }
  return false;
}

bool is_class(float value, int64_t classes) {
  return value >= 0 && value < static_cast<float>(classes) && value == std::floor(value);
}

}  // namespace

Result<RowReader> RowReader::make(const RowSchema& schema, const std::vector<RowsInput>& inputs,
                                  bool train, uint64_t seed) {
  RowReader reader;
  reader.schema_ = schema;
  for (const RowsInput& input : inputs) {
    const Status status = reader.bind(input, train, seed);
    if (!status.ok()) return status.with_context(fmt::format("top \"{}\"", input.top));
  }
  return reader;
}

Status RowReader::bind(const RowsInput& input, bool train, uint64_t seed) {
  Binding binding{input, -1, input.row_shape.count(), std::nullopt, input.row_shape};
  if (!input.column.empty()) {
    CFT_ASSIGN(binding.column, schema_.find(input.column));
  }
  if (input.transform) {
    CFT_ASSIGN(Transformer transform,
               Transformer::make(*input.transform, train, input.row_shape, seed));
    binding.out_shape = transform.out_shape();
    binding.transform = std::move(transform);
  }
  bindings_.push_back(std::move(binding));
  return {};
}

std::vector<Shape> RowReader::top_shapes() const {
  std::vector<Shape> shapes;
  for (const Binding& binding : bindings_) shapes.push_back(binding.out_shape);
  return shapes;
}

Status RowReader::read(Row row, const RowPosition& position, std::span<float* const> tops,
                       int64_t index, std::vector<float>& scratch) const {
  for (size_t top = 0; top < bindings_.size(); ++top) {
    const Binding& binding = bindings_[top];
    float* out = tops[top] + index * binding.out_shape.count();
    if (binding.column < 0) {
      std::fill_n(out, binding.out_shape.count(), 0.f);
    } else if (binding.transform) {
      CFT_TRY(read_transformed(binding, row, position, scratch, out));
    } else {
      CFT_TRY(read_plain(binding, row, out));
    }
  }
  return {};
}

Status RowReader::validate(Row row, std::vector<float>& scratch) const {
  for (const Binding& binding : bindings_) {
    if (binding.column < 0) continue;
    scratch.resize(static_cast<size_t>(binding.values));
    CFT_TRY(read_plain(binding, row, scratch.data()));
    CFT_TRY(check_finite(binding, row, scratch));
  }
  return {};
}

Result<Cell> RowReader::checked_cell(const Binding& binding, Row row) const {
  const Cell cell = schema_.cell(row, binding.column);
  if (cell.values() == binding.values) return cell;
  return invalid_argument(fmt::format(
      "{}: {} values, but the top \"{}\" takes {} a row (shape {}); change the column or the shape "
      "of the data layer",
      where(binding, row), cell.values(), binding.input.top, binding.values,
      binding.input.row_shape.str()));
}

Status RowReader::read_plain(const Binding& binding, Row row, float* out) const {
  CFT_ASSIGN(const Cell cell, checked_cell(binding, row));
  if (!convert(cell, out)) {
    return invalid_argument(fmt::format("{}: {} is not a number; use a numeric column",
                                        where(binding, row), cell.describe()));
  }
  const int64_t classes = binding.input.label_classes;
  if (classes == 0) return {};
  for (int64_t i = 0; i < binding.values; ++i) {
    if (!is_class(out[i], classes)) {
      return invalid_argument(fmt::format(
          "{}: the label is {}, but the net has {} classes, so labels must be whole numbers from 0 "
          "to {}; correct the rows or the net's number of outputs",
          where(binding, row), cell.describe(), classes, classes - 1));
    }
  }
  return {};
}

Status RowReader::read_transformed(const Binding& binding, Row row, const RowPosition& position,
                                   std::vector<float>& scratch, float* out) const {
  CFT_ASSIGN(const Cell cell, checked_cell(binding, row));
  if (cell.type == ColumnType::kU8) {
    const auto* pixels = reinterpret_cast<const uint8_t*>(cell.bytes.data());
    binding.transform->apply({pixels, cell.bytes.size()}, position, out);
  } else if (cell.type == ColumnType::kF32) {
    binding.transform->apply_floats(cell.bytes, position, out);
  } else {
    scratch.resize(static_cast<size_t>(binding.values));
    CFT_TRY(read_plain(binding, row, scratch.data()));
    binding.transform->apply_floats(std::as_bytes(std::span(scratch)), position, out);
  }
  return {};
}

Status RowReader::check_finite(const Binding& binding, Row row,
                               const std::vector<float>& values) const {
  // The sum of zeros is a zero, unless a NaN or an infinity is among the factors.
  float sum = 0;
  for (const float value : values) sum += value * 0.0f;
  if (sum == 0) return {};
  size_t i = 0;
  while (std::isfinite(values[i])) ++i;
  return invalid_argument(
      fmt::format("{}: value {} is {}; training needs finite numbers, so drop or fill such rows",
                  where(binding, row), i, values[i]));
}

std::string RowReader::where(const Binding& binding, Row row) const {
  return fmt::format("column \"{}\", {}", binding.input.column, schema_.describe_row(row));
}

}  // namespace cafetiere
