// SPDX-License-Identifier: Apache-2.0
// RowPath: the axes of a layer's blobs that hold the rows of a batch.
#pragma once

#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// The axes that hold the rows in a layer's first bottom and in one of its tops.
struct RowPath {
  const Shape& bottom;
  int bottom_axis;
  const Shape& top;
  int top_axis;

  /// along(): whether the bottom's rows are along axis `given` (negative: from the end). from():
  /// whether they are along it or a later axis. Both return true if the bottom lacks that axis, as
  /// nothing is known then.
  bool along(int given) const {
    const Result<int> axis = bottom.axis(given);
    return !axis.ok() || bottom_axis == *axis;
  }
  bool from(int given) const {
    const Result<int> axis = bottom.axis(given);
    return !axis.ok() || bottom_axis >= *axis;
  }
};

/// LayerType::rows_apart of layers that compute each value from the values at the same position.
inline bool always_apart(const caffe::LayerParameter&, const RowPath&) { return true; }

}  // namespace cafetiere
