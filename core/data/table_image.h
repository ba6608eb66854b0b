// SPDX-License-Identifier: Apache-2.0
// Images in the cells of a table: their statistics, and their encoding as numbers.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/base/status.h"
#include "core/data/image.h"
#include "core/data/row_schema.h"
#include "core/model/proto/caffe.pb.h"
#include "core/model/proto/table.pb.h"

namespace cafetiere {

/// Sizes and pixel statistics of the images of a column, for any part of a table. Sums are of
/// integers, hence equal for any partitioning.
class ImageStatistics {
 public:
  /// If the request has a shape, images are resized to its height and width.
  explicit ImageStatistics(const caffe::TableDataParameter::Column& request);

  Status add(const Cell& cell);
  void merge(const table::Images& other);
  table::Images counts() const { return counts_; }
  /// Sets the column's shape and a mean and a scale per channel. One channel if all images are
  /// gray, else three. Errors: no images; images of different sizes, unless a size is requested.
  Status encode(caffe::TableDataParameter::Column* column) const;

 private:
  int height_ = 0, width_ = 0;  // 0: no resizing
  table::Images counts_;
};

/// Immutable and thread-safe.
class ImageEncoder {
 public:
  /// For a column of kind IMAGE; an error if its shape or means are inconsistent.
  static Result<ImageEncoder> make(const caffe::TableDataParameter::Column& column);

  /// Writes the numbers of the shape, channel by channel: blue, green and red.
  Status encode(const Cell& cell, float* out) const;

 private:
  Shape shape_;
  std::vector<std::array<float, 256>> levels_;  // encoded value of each pixel value, per channel
};

}  // namespace cafetiere
