// SPDX-License-Identifier: Apache-2.0
// ReshapingLayer: the common part of layers that give their bottom another shape (Flatten, Reshape).
// No bytes move, unless a neighbour wants another order.
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

  /// LayerType::rows_apart: what lies before the rows is as much in the top as in the bottom.
  static bool keeps_rows(const caffe::LayerParameter&, const RowPath& rows) {
    return rows.bottom.count(0, rows.bottom_axis) == rows.top.count(0, rows.top_axis);
  }
};

}  // namespace cafetiere
