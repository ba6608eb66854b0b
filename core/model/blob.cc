// SPDX-License-Identifier: Apache-2.0
#include "core/model/blob.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace cafetiere {
namespace {

bool has_legacy_shape(const caffe::BlobProto& blob) {
  return blob.has_num() || blob.has_channels() || blob.has_height() || blob.has_width();
}

std::vector<int64_t> stored_dims(const caffe::BlobProto& blob) {
  if (has_legacy_shape(blob)) return {blob.num(), blob.channels(), blob.height(), blob.width()};
  return {blob.shape().dim().begin(), blob.shape().dim().end()};
}

template <class T>
T little_endian(const char* bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

/// Converts a 16-bit IEEE float.
float from_half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const float size = exponent == 31  ? (fraction ? std::numeric_limits<float>::quiet_NaN()
                                                 : std::numeric_limits<float>::infinity())
                     : exponent == 0 ? std::ldexp(float(fraction), -24)
                                     : std::ldexp(float(1024 + fraction), exponent - 25);
  return bits & 0x8000 ? -size : size;
}

/// How NVIDIA's fork stores values; size 0 for types not used for weights.
struct RawFormat {
  size_t size = 0;
  float (*read)(const char*) = nullptr;
};

RawFormat raw_format(const caffe::BlobProto& blob) {
  switch (blob.raw_data_type()) {
    case caffe::BlobProto::DOUBLE:
      return {8, [](const char* at) { return float(little_endian<double>(at)); }};
    case caffe::BlobProto::FLOAT:
      return {4, [](const char* at) { return little_endian<float>(at); }};
    case caffe::BlobProto::FLOAT16:
      return {2, [](const char* at) { return from_half(little_endian<uint16_t>(at)); }};
    case caffe::BlobProto::INT:
      return {4, [](const char* at) { return float(little_endian<int32_t>(at)); }};
    case caffe::BlobProto::UINT:
      return {4, [](const char* at) { return float(little_endian<uint32_t>(at)); }};
    default:
      return {};
  }
}

/// Whether the values are raw bytes; data and double_data take precedence.
bool is_raw(const caffe::BlobProto& blob) {
  return blob.has_raw_data() && blob.data_size() == 0 && blob.double_data_size() == 0;
}

}  // namespace

Status check_blob_shape(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t dim : shape.dims()) {
    const int64_t values = std::max<int64_t>(dim, 1);
    if (dim < 0 || count > kMaxBlobCount / values) {
      return invalid_argument(
          fmt::format("impossible shape {}: a size is negative, or there are more than 2^31 - 1 "
                      "values",
                      fmt::join(shape.dims(), " ")));
    }
    count *= values;
  }
  return {};
}

Result<Shape> blob_shape(const caffe::BlobProto& blob) {
  Shape shape(stored_dims(blob));
  CFT_TRY(check_blob_shape(shape).with_context("a stored blob"));
  return shape;
}

size_t value_count(const caffe::BlobProto& blob) {
  if (is_raw(blob)) {
    const size_t size = raw_format(blob).size;
    return size == 0 || blob.raw_data().size() % size != 0 ? 0 : blob.raw_data().size() / size;
  }
  return static_cast<size_t>(blob.double_data_size() > 0 ? blob.double_data_size()
                                                         : blob.data_size());
}

bool shape_equals(const caffe::BlobProto& blob, const Shape& expected) {
  const std::vector<int64_t> stored = stored_dims(blob);
  std::vector<int64_t> wanted = expected.dims();
  if (has_legacy_shape(blob) && wanted.size() < stored.size()) {
    wanted.insert(wanted.begin(), stored.size() - wanted.size(), 1);
  }
  return stored == wanted;
}

Status check_shape(const caffe::BlobProto& blob, const Shape& expected) {
  if (shape_equals(blob, expected)) return {};
  CFT_ASSIGN(const Shape stored, blob_shape(blob));
  return invalid_argument(fmt::format("shape mismatch: the file has {}, the net needs {}",
                                      stored.str(), expected.str()));
}

Status blob_to_floats(const caffe::BlobProto& blob, const Shape& expected, std::span<float> out) {
  CFT_TRY(check_shape(blob, expected));
  const size_t values = value_count(blob);
  if (values != out.size() || static_cast<int64_t>(values) != expected.count()) {
    return invalid_argument(
        fmt::format("the file has {} values for shape {}; it is damaged", values, expected.str()));
  }
  if (is_raw(blob)) {
    const RawFormat format = raw_format(blob);
    const char* at = blob.raw_data().data();
    for (size_t i = 0; i < out.size(); ++i) out[i] = format.read(at + i * format.size);
  } else if (blob.double_data_size() > 0) {
    std::transform(blob.double_data().begin(), blob.double_data().end(), out.begin(),
                   [](double x) { return static_cast<float>(x); });
  } else {
    std::copy(blob.data().begin(), blob.data().end(), out.begin());
  }
  return {};
}

void floats_to_blob(std::span<const float> values, const Shape& shape, caffe::BlobProto* blob) {
  blob->Clear();
  for (int64_t dim : shape.dims()) blob->mutable_shape()->add_dim(dim);
  blob->mutable_shape();  // a scalar has a shape too, with no axes
  blob->mutable_data()->Add(values.begin(), values.end());
}

}  // namespace cafetiere
