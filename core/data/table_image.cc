// SPDX-License-Identifier: Apache-2.0
#include "core/data/table_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/data/image_codecs.h"

namespace cafetiere {
namespace {

using TableColumn = caffe::TableDataParameter::Column;

constexpr int kColors = 3;
constexpr double kLeastVariance = 1e-6;  // for integers; smaller values are rounding errors
constexpr uint64_t kMostNumbers = 1 << 26;

Result<Image> decode(const Cell& cell, ImageColor color) {
  if (cell.type != ColumnType::kU8) {
    return invalid_argument(
        fmt::format("{} is no image: give the bytes of a file, or pixels", cell.describe()));
  }
  const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(cell.bytes.data()),
                                       cell.bytes.size());
  const bool are_pixels =
      bytes.size() > 1 && bytes[0] == 'P' && (bytes[1] == '5' || bytes[1] == '6');
  return are_pixels ? decode_pnm(bytes, color) : decode_image(bytes, color);
}

void resize(Image* image, int height, int width) {
  if (image->height == height && image->width == width) return;
  *image = resize_image(*image, height, width);
}

}  // namespace

ImageStatistics::ImageStatistics(const TableColumn& request) {
  if (request.shape_size() == kColors) {
    height_ = int(request.shape(1));
    width_ = int(request.shape(2));
  }
  for (int c = 0; c < kColors; ++c) {
    counts_.add_sum(0);
    counts_.add_squares(0);
  }
}

Status ImageStatistics::add(const Cell& cell) {
  CFT_ASSIGN(Image image, decode(cell, ImageColor::kStored));
  if (height_ > 0) resize(&image, height_, width_);
  table::Images one;
  one.set_pixels(uint64_t(image.height) * uint64_t(image.width));
  one.set_channels(image.channels == 1 ? 1 : kColors);
  one.set_least_height(uint32_t(image.height));
  one.set_most_height(uint32_t(image.height));
  one.set_least_width(uint32_t(image.width));
  one.set_most_width(uint32_t(image.width));
  for (int c = 0; c < kColors; ++c) {
    uint64_t sum = 0, squares = 0;
    const auto step = size_t(image.channels);
    for (size_t i = image.channels == 1 ? 0 : size_t(c); i < image.pixels.size(); i += step) {
      const uint64_t x = image.pixels[i];
      sum += x;
      squares += x * x;
    }
    one.add_sum(sum);
    one.add_squares(squares);
  }
  merge(one);
  return {};
}

void ImageStatistics::merge(const table::Images& other) {
  if (other.pixels() == 0 || other.sum_size() != kColors || other.squares_size() != kColors) return;
  const bool first = counts_.pixels() == 0;
  const auto least = [&](uint32_t a, uint32_t b) { return first ? b : std::min(a, b); };
  counts_.set_least_height(least(counts_.least_height(), other.least_height()));
  counts_.set_least_width(least(counts_.least_width(), other.least_width()));
  counts_.set_most_height(std::max(counts_.most_height(), other.most_height()));
  counts_.set_most_width(std::max(counts_.most_width(), other.most_width()));
  counts_.set_channels(std::max(counts_.channels(), other.channels()));
  counts_.set_pixels(counts_.pixels() + other.pixels());
  for (int c = 0; c < kColors; ++c) {
    counts_.set_sum(c, counts_.sum(c) + other.sum(c));
    counts_.set_squares(c, counts_.squares(c) + other.squares(c));
  }
}

Status ImageStatistics::encode(TableColumn* column) const {
  const auto failed = [&](const std::string& what) {
    return invalid_argument(fmt::format("column \"{}\": {}", column->name(), what));
  };
  if (counts_.pixels() == 0) return failed("it has no image in any row; leave it out");
  if (counts_.least_height() != counts_.most_height() ||
      counts_.least_width() != counts_.most_width()) {
    return failed(fmt::format(
        "images of several sizes, from {} x {} to {} x {} (height x width); resize them, or give a "
        "size that all get",
        counts_.least_height(), counts_.least_width(), counts_.most_height(),
        counts_.most_width()));
  }
  column->clear_shape();
  for (uint32_t axis : {counts_.channels(), counts_.most_height(), counts_.most_width()}) {
    column->add_shape(axis);
  }
  const auto pixels = double(counts_.pixels());
  for (int c = 0; c < int(counts_.channels()); ++c) {
    const double mean = double(counts_.sum(c)) / pixels;
    const double variance = double(counts_.squares(c)) / pixels - mean * mean;
    column->add_mean(mean);
    column->add_scale(variance > kLeastVariance ? 1 / std::sqrt(variance) : 0);
  }
  return {};
}

Result<ImageEncoder> ImageEncoder::make(const TableColumn& column) {
  const auto& shape = column.shape();
  const bool fits = shape.size() == 3 && (shape[0] == 1 || shape[0] == kColors) && shape[1] > 0 &&
                    shape[2] > 0 && uint64_t(shape[1]) * shape[2] <= kMostNumbers;
  if (!fits || column.mean_size() != int(shape[0]) || column.scale_size() != int(shape[0])) {
    return invalid_argument(
        fmt::format("column '{}': an IMAGE has a shape of 1 or 3 channels, height and width, and a "
                    "mean and a scale for each channel",
                    column.name()));
  }
  ImageEncoder encoder;
  encoder.shape_ = Shape{shape[0], shape[1], shape[2]};
  for (int c = 0; c < int(shape[0]); ++c) {
    auto& levels = encoder.levels_.emplace_back();
    for (size_t x = 0; x < levels.size(); ++x) {
      levels[x] = float((double(x) - column.mean(c)) * column.scale(c));
    }
  }
  return encoder;
}

Status ImageEncoder::encode(const Cell& cell, float* out) const {
  CFT_ASSIGN(Image image, decode(cell, color_for_channels(shape_[0])));
  resize(&image, int(shape_[1]), int(shape_[2]));
  const size_t pixels = size_t(image.height) * size_t(image.width), channels = levels_.size();
  for (size_t c = 0; c < channels; ++c) {
    const std::array<float, 256>& levels = levels_[c];
    const uint8_t* in = image.pixels.data() + c;
    for (size_t i = 0; i < pixels; ++i) *out++ = levels[in[i * channels]];
  }
  return {};
}

}  // namespace cafetiere
