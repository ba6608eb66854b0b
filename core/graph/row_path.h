// SPDX-License-Identifier: Apache-2.0
// RowPath: where the rows of a batch lie as a layer sees them.
#pragma once

#include "core/model/proto/caffe.pb.h"
#include "core/tensor/shape.h"

namespace cafetiere {

/// The axes along which the rows lie in a layer's first bottom and in one of its tops.
struct RowPath {
  const Shape& bottom;
  int bottom_axis;
  const Shape& top;
  int top_axis;

  /// Whether the bottom's rows lie along `given`, which counts from the end if it is negative, or
  /// there or behind it. Of an axis that the bottom does not have both are true: nothing is known.
  bool along(int given) const {
    const Result<int> axis = bottom.axis(given);
    return !axis.ok() || bottom_axis == *axis;
  }
  bool from(int given) const {
    const Result<int> axis = bottom.axis(given);
    return !axis.ok() || bottom_axis >= *axis;
  }
};

/// LayerType::rows_apart of layers whose every value comes of the values at the same place.
inline bool always_apart(const caffe::LayerParameter&, const RowPath&) { return true; }

}  // namespace cafetiere
