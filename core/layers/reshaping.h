// SPDX-License-Identifier: Apache-2.0
// ReshapingLayer: the base of layers that change only their bottom's shape (Flatten, Reshape).
// Nothing is copied unless a neighbouring layer needs another layout.
#pragma once

#include "core/graph/layer.h"

namespace cafetiere {

class ReshapingLayer : public Layer {
 public:
  using Layer::Layer;

  Status forward(LoweringContext& plan) const override {
    plan.tops[0] = plan.program.reshaped(plan.bottoms[0], plan.top_shapes[0]);
    return {};
  }
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    plan.bottom_diffs[0] = plan.program.reshaped(plan.top_diffs[0], plan.bottom_shape(0));
    return {};
  }

  /// LayerType::rows_apart: true if the axes before the rows have the same count in top and bottom.
  static bool keeps_rows(const caffe::LayerParameter&, const RowPath& rows) {
    return rows.bottom.count(0, rows.bottom_axis) == rows.top.count(0, rows.top_axis);
  }
};

}  // namespace cafetiere
