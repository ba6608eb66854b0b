#include "core/data/rows_source.h"

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

/// Rows of a batch lie anywhere in memory: their first lines are asked for some rows before.
constexpr size_t kAhead = 4;
void touch_ahead(std::span<const std::byte> row) {
  constexpr size_t kLine = 64, kLines = 6;
  for (size_t at = 0; at < std::min(row.size(), kLines * kLine); at += kLine) {
    __builtin_prefetch(row.data() + at);
  }
}

bool is_class(float value, int64_t classes) {
  return value >= 0 && value < static_cast<float>(classes) && value == std::floor(value);
}

}  // namespace

Result<std::unique_ptr<RowsSource>> RowsSource::make(std::shared_ptr<const ShardStore> store,
                                                     const std::vector<RowsInput>& inputs,
                                                     int64_t batch, bool train, uint64_t seed) {
  CFT_ASSIGN(Sampler sampler, Sampler::make(store->counts(), batch, seed));
  std::unique_ptr<RowsSource> source(new RowsSource(std::move(store), std::move(sampler)));
  for (const RowsInput& input : inputs) {
    const Status status = source->bind(input, train, seed);
    if (!status.ok()) return status.with_context(fmt::format("top \"{}\"", input.top));
  }
  return source;
}

Status RowsSource::bind(const RowsInput& input, bool train, uint64_t seed) {
  CFT_ASSIGN(const int column, store_->schema().find(input.column));
  Binding binding{input, column, input.row_shape.count(), std::nullopt, input.row_shape};
  if (input.transform) {
    CFT_ASSIGN(Transformer transform,
               Transformer::make(*input.transform, train, input.row_shape, seed));
    binding.out_shape = transform.out_shape();
    binding.transform = std::move(transform);
  }
  bindings_.push_back(std::move(binding));
  return {};
}

std::vector<Shape> RowsSource::top_shapes() const {
  std::vector<Shape> shapes;
  for (const Binding& binding : bindings_) {
    std::vector<int64_t> dims = binding.out_shape.dims();
    dims.insert(dims.begin(), sampler_.batch_size());
    shapes.emplace_back(std::move(dims));
  }
  return shapes;
}

Status RowsSource::fill(int shard, int64_t sub_step, std::span<float* const> tops) {
  const std::span<const uint32_t> batch = sampler_.batch(shard, sub_step);
  std::vector<float> scratch;
  for (size_t i = 0; i < batch.size(); ++i) {
    const Row row = store_->row(shard, batch[i]);
    if (i + kAhead < batch.size()) touch_ahead(store_->row(shard, batch[i + kAhead]));
    for (size_t top = 0; top < bindings_.size(); ++top) {
      const Binding& binding = bindings_[top];
      float* out = tops[top] + static_cast<int64_t>(i) * binding.out_shape.count();
      if (binding.transform) {
        const RowPosition position{sub_step, shard, static_cast<int64_t>(i)};
        CFT_TRY(read_transformed(binding, row, position, scratch, out));
      } else {
        CFT_TRY(read(binding, row, out));
      }
    }
  }
  return {};
}

Status RowsSource::validate() const {
  std::vector<float> scratch;
  for (int shard = store_->owned().first; shard < store_->owned().end; ++shard) {
    for (int64_t i = 0; i < store_->counts()[static_cast<size_t>(shard)]; ++i) {
      const Row row = store_->row(shard, i);
      for (const Binding& binding : bindings_) {
        scratch.resize(static_cast<size_t>(binding.values));
        CFT_TRY(read(binding, row, scratch.data()));
        CFT_TRY(check_finite(binding, row, scratch));
      }
    }
  }
  return {};
}

Result<Cell> RowsSource::checked_cell(const Binding& binding, Row row) const {
  const Cell cell = store_->schema().cell(row, binding.column);
  if (cell.values() == binding.values) return cell;
  return invalid_argument(fmt::format(
      "{}: {} values, but the top \"{}\" takes {} a row (shape {}); change the column or the shape "
      "of the data layer",
      where(binding, row), cell.values(), binding.input.top, binding.values,
      binding.input.row_shape.str()));
}

Status RowsSource::read(const Binding& binding, Row row, float* out) const {
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

Status RowsSource::read_transformed(const Binding& binding, Row row, const RowPosition& position,
                                    std::vector<float>& scratch, float* out) const {
  CFT_ASSIGN(const Cell cell, checked_cell(binding, row));
  if (cell.type == ColumnType::kU8) {
    const auto* pixels = reinterpret_cast<const uint8_t*>(cell.bytes.data());
    binding.transform->apply({pixels, cell.bytes.size()}, position, out);
  } else if (cell.type == ColumnType::kF32) {
    binding.transform->apply_floats(cell.bytes, position, out);
  } else {
    scratch.resize(static_cast<size_t>(binding.values));
    CFT_TRY(read(binding, row, scratch.data()));
    binding.transform->apply_floats(std::as_bytes(std::span(scratch)), position, out);
  }
  return {};
}

Status RowsSource::check_finite(const Binding& binding, Row row,
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

std::string RowsSource::where(const Binding& binding, Row row) const {
  return fmt::format("column \"{}\", {}", binding.input.column, store_->schema().describe_row(row));
}

}  // namespace cafetiere
