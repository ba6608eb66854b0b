// SPDX-License-Identifier: Apache-2.0
// Images in the cells of a table: what must be known of them, and how they become numbers.
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

/// Sizes and pixels of the images of a column, of any part of a table. Sums are of whole numbers, hence the
/// same for any partitioning.
class ImageStatistics {
 public:
  /// Of images resized to height and width of the shape that the request has, if it has one.
  explicit ImageStatistics(const caffe::TableDataParameter::Column& request);

  Status add(const Cell& cell);
  void merge(const table::Images& other);
  table::Images counts() const { return counts_; }
  /// Gives the column its shape and, for each channel, a mean and a scale. One channel, if all images are
  /// gray, else three. Errors: no image at all; images of several sizes where none was asked for.
  Status encode(caffe::TableDataParameter::Column* column) const;

 private:
  int height_ = 0, width_ = 0;  // 0: as they are
  table::Images counts_;
};

/// Immutable: any thread may use it.
class ImageEncoder {
 public:
  /// Of a column of kind IMAGE; an error if its shape or the means do not fit it.
  static Result<ImageEncoder> make(const caffe::TableDataParameter::Column& column);

  /// Writes as many numbers as the shape has: channel after channel, blue, green and red.
  Status encode(const Cell& cell, float* out) const;

 private:
  Shape shape_;
  std::vector<std::array<float, 256>> levels_;  // what a pixel becomes, of each channel
};

}  // namespace cafetiere
