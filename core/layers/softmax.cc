// SPDX-License-Identifier: Apache-2.0
// Softmax: exp(x) normalised to a sum of 1 along `axis`.
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Softmax : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_TRY(s.bottoms[0].axis(param().softmax_param().axis()).status());
    s.tops[0] = s.bottoms[0];
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const Shape view, channels_first(plan.bottom_shape(0)));
    const TensorId x = plan.program.reshaped(plan.bottoms[0], view);
    const TensorId y = plan.new_tensor("top", view);
    plan.device.softmax(plan.program, plan.step("forward"), x, y);
    plan.saved = {y};
    plan.tops[0] = plan.program.reshaped(y, plan.top_shapes[0]);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    CFT_ASSIGN(const Shape view, channels_first(plan.bottom_shape(0)));
    const TensorId dy = plan.program.reshaped(plan.top_diffs[0], view);
    const TensorId down = plan.new_tensor("diff", view);
    plan.device.softmax_backward(plan.program, plan.step("backward"), plan.saved[0], dy, down);
    plan.bottom_diffs[0] = plan.program.reshaped(down, plan.bottom_shape(0));
    return {};
  }

 private:
  /// The shape as (outer, channels, inner), where channels is the softmax axis.
  Result<Shape> channels_first(const Shape& shape) const {
    CFT_ASSIGN(const int axis, shape.axis(param().softmax_param().axis()));
    return Shape{shape.count(0, axis), shape[axis], shape.count(axis + 1)};
  }
};

}  // namespace

extern const LayerType layer_softmax{
    .name = "Softmax",
    .create = create_layer<Softmax>,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      return !rows.along(param.softmax_param().axis());
    }};

}  // namespace cafetiere
