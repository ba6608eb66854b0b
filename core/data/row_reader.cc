// SPDX-License-Identifier: Apache-2.0
#include "core/data/row_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/data/table_values.h"

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

/// Converts a cell to a number; false if it is a string that is not a number.
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
    case ColumnType::kString: {
      const std::optional<double> number = number_of(cell.text());
      if (number) *out = static_cast<float>(*number);
      return number.has_value();
    }
  }
  return false;
}

std::span<const uint8_t> pixels_of(const Cell& cell) {
  return {reinterpret_cast<const uint8_t*>(cell.bytes.data()), cell.bytes.size()};
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
  Binding binding{input, -1, input.row_shape.count(), std::nullopt, input.row_shape, std::nullopt};
  if (input.table) {
    CFT_ASSIGN(TableEncoder encoder, TableEncoder::make(*input.table, schema_, input.lenient));
    binding.encoder = std::move(encoder);
    bindings_.push_back(std::move(binding));
    return {};
  }
  if (!input.column.empty()) {
    CFT_ASSIGN(binding.column, schema_.find(input.column));
  }
  if (input.encoded && (input.row_shape.axes() != 3 || input.row_shape.count() < 1)) {
    return invalid_argument(
        "encoded images need channels, height and width above 0, not the shape " +
        input.row_shape.str());
  }
  if (input.transform || input.encoded) {
    const caffe::TransformationParameter none;
    CFT_ASSIGN(Transformer transform, Transformer::make(input.transform.value_or(none), train,
                                                        input.row_shape, seed, input.mean.get()));
    const bool has_bytes = input.encoded || binding.column < 0 ||
                           schema_.columns[size_t(binding.column)].type == ColumnType::kU8;
    if (transform.resizes() && !has_bytes) {
      return invalid_argument(
          "transform_param: only images of bytes get a random size; give a column of bytes or of "
          "image files, or remove random_resize_param and random_aspect_ratio_param");
    }
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
                       int64_t index, int64_t rows, std::vector<float>& scratch) const {
  for (size_t top = 0; top < bindings_.size(); ++top) {
    if (!tops[top]) continue;
    const Binding& binding = bindings_[top];
    float* out = tops[top] + index * binding.out_shape.count();
    if (binding.encoder) {
      CFT_TRY(read_table(binding, row, out));
    } else if (binding.column < 0) {
      std::fill_n(out, binding.out_shape.count(), 0.f);
    } else if (binding.input.transpose) {
      scratch.resize(static_cast<size_t>(binding.values));
      CFT_TRY(read_plain(binding, row, scratch.data()));
      for (int64_t i = 0; i < binding.values; ++i) tops[top][i * rows + index] = scratch[size_t(i)];
    } else if (binding.input.encoded) {
      CFT_TRY(read_encoded(binding, row, position, out));
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
    if (binding.encoder) {
      scratch.resize(static_cast<size_t>(binding.values));
      CFT_TRY(read_table(binding, row, scratch.data()));
      continue;
    }
    if (binding.column < 0) continue;
    if (binding.input.encoded) {
      CFT_TRY(encoded_image(binding, row).status());
      continue;
    }
    scratch.resize(static_cast<size_t>(binding.values));
    CFT_TRY(read_plain(binding, row, scratch.data()));
    CFT_TRY(check_finite(binding, row, scratch));
  }
  return {};
}

Status RowReader::check_form(Row row) const {
  for (const Binding& binding : bindings_) {
    if (binding.column < 0) continue;
    CFT_TRY(binding.input.encoded ? image(binding, row).status()
                                  : checked_cell(binding, row).status());
  }
  return {};
}

Result<Cell> RowReader::checked_cell(const Binding& binding, Row row) const {
  const Cell cell = schema_.cell(row, binding.column);
  if (cell.values() == binding.values) return cell;
  const std::string_view format = cell.type == ColumnType::kU8 ? image_format(pixels_of(cell)) : "";
  const std::string remedy =
      format.empty() ? "change the column or the shape of the data layer"
                     : fmt::format(
                           "they are a {} file: for such, set image_encoded: true in the "
                           "memory_data_param of a MemoryData layer",
                           format);
  return invalid_argument(fmt::format(
      "{}: {} values, but the top \"{}\" takes {} a row (shape {}); {}", where(binding, row),
      cell.values(), binding.input.top, binding.values, binding.input.row_shape.str(), remedy));
}

Result<std::span<const uint8_t>> RowReader::encoded_image(const Binding& binding, Row row) const {
  const Cell cell = schema_.cell(row, binding.column);
  if (cell.type == ColumnType::kU8 && !image_format(pixels_of(cell)).empty())
    return pixels_of(cell);
  return invalid_argument(fmt::format(
      "{}: {} bytes of type {} are no JPEG, PNG or WebP image; the net's image_encoded: "
      "true asks for binary columns of such",
      where(binding, row), cell.bytes.size(), column_type_name(cell.type)));
}

/// Decodes an image and checks, or changes, its size to the net's input size.
Result<Image> RowReader::image(const Binding& binding, Row row) const {
  const Shape& wanted = binding.input.row_shape;
  CFT_ASSIGN(const auto bytes, encoded_image(binding, row));
  Result<Image> image = decode_image(bytes, color_for_channels(wanted[0]));
  if (!image.ok()) return image.status().with_context(where(binding, row));
  if (schema_.columns[static_cast<size_t>(binding.column)].resize) {
    *image = resize_image(*image, static_cast<int>(wanted[1]), static_cast<int>(wanted[2]));
  }
  if (!binding.transform->accepts(image->shape())) {
    return invalid_argument(fmt::format(
        "{}: the image is {} x {} x {}, but the data layer takes {} x {} x {}; resize the images, "
        "or set `resize` to have them resized",
        where(binding, row), image->channels, image->height, image->width, wanted[0], wanted[1],
        wanted[2]));
  }
  return image;
}

Status RowReader::read_encoded(const Binding& binding, Row row, const RowPosition& position,
                               float* out) const {
  CFT_ASSIGN(const Image decoded, image(binding, row));
  std::vector<uint8_t> planes(decoded.pixels.size());
  to_planes(decoded, planes.data());
  binding.transform->apply(planes, decoded.shape(), position, out);
  return {};
}

Status RowReader::read_plain(const Binding& binding, Row row, float* out) const {
  CFT_ASSIGN(const Cell cell, checked_cell(binding, row));
  if (!convert(cell, out)) {
    return invalid_argument(fmt::format("{}: {} is not a number; use a numeric column",
                                        where(binding, row), cell.describe()));
  }
  return check_classes(binding, row, {out, size_t(binding.values)});
}

Status RowReader::read_table(const Binding& binding, Row row, float* out) const {
  CFT_TRY(binding.encoder->encode(schema_, row, out));
  return check_classes(binding, row, {out, size_t(binding.values)});
}

Status RowReader::check_classes(const Binding& binding, Row row,
                                std::span<const float> values) const {
  const int64_t classes = binding.input.label_classes;
  const std::optional<int32_t> ignored = binding.input.ignored_label;
  if (classes == 0) return {};
  for (const float value : values) {
    if (is_class(value, classes) || (ignored && value == float(*ignored))) continue;
    return invalid_argument(fmt::format(
        "{}: the label is {}, but the net has {} classes, so labels must be whole numbers from 0 "
        "to {}; correct the rows or the net's number of outputs",
        where(binding, row), value, classes, classes - 1));
  }
  return {};
}

Status RowReader::read_transformed(const Binding& binding, Row row, const RowPosition& position,
                                   std::vector<float>& scratch, float* out) const {
  CFT_ASSIGN(const Cell cell, checked_cell(binding, row));
  if (cell.type == ColumnType::kU8 && binding.input.interleaved) {
    const Shape& shape = binding.input.row_shape;
    const std::span<const uint8_t> pixels = pixels_of(cell);
    const Image image{.height = int(shape[1]),
                      .width = int(shape[2]),
                      .channels = int(shape[0]),
                      .pixels = {pixels.begin(), pixels.end()}};
    std::vector<uint8_t> planes(image.pixels.size());
    to_planes(image, planes.data());
    binding.transform->apply(planes, position, out);
  } else if (cell.type == ColumnType::kU8) {
    binding.transform->apply(pixels_of(cell), position, out);
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
  // The sum of 0 * x is 0 unless some x is NaN or infinite.
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
