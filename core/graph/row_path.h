// SPDX-License-Identifier: Apache-2.0
// RowPath: the axes that hold the rows of a batch, as a layer sees them.
#pragma once

#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// The axes of the rows in a layer's first bottom and in one of its tops.
struct RowPath {
  const Shape& bottom;
  int bottom_axis;
  const Shape& top;
  int top_axis;

  /// Whether the bottom's rows are along `given`, which counts from the end if it is negative, or
  /// along it or a later axis. Of an axis that the bottom lacks both are true: nothing is known.
  bool along(int given) const {
    const Result<int> axis = bottom.axis(given);
    return !axis.ok() || bottom_axis == *axis;
  }
  bool from(int given) const {
    const Result<int> axis = bottom.axis(given);
    return !axis.ok() || bottom_axis >= *axis;
  }
};

/// LayerType::rows_apart of layers that compute each value from those at the same position.
inline bool always_apart(const caffe::LayerParameter&, const RowPath&) { return true; }

}  // namespace cafetiere
