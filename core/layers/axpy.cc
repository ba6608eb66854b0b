// SPDX-License-Identifier: Apache-2.0
// Axpy (SENet, Hu et al. 2018): y = a x + b with one a per image and channel. Bottoms: a (N, C) or
// (N, C, 1, 1); x (N, C, ..); b, same shape as x.
#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Axpy : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape &a = s.bottoms[0], &x = s.bottoms[1], &b = s.bottoms[2];
    if (x.axes() < 2 || !(b == x)) {
      return invalid_argument("needs two bottoms (N, C, ..) of one shape behind the first, not " +
                              x.str() + " and " + b.str());
    }
    if (a.axes() < 2 || a[0] != x[0] || a[1] != x[1] || a.count(2) != 1) {
      return invalid_argument("needs a factor for each image and channel of " + x.str() +
                              " as the first bottom, not " + a.str());
    }
    s.tops[0] = x;
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const TensorId top = plan.new_tensor("top", planes(plan));
    map_channels<2, 1>(plan.program, plan.step("forward"),
                       [](const auto& d, const auto& c) { return c[0] * d[0] + d[1]; }, top,
                       {as_planes(plan, plan.bottoms[1]), as_planes(plan, plan.bottoms[2])},
                       {factors(plan)});
    plan.tops[0] = plan.program.reshaped(top, plan.top_shapes[0]);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    const TensorId dy = as_planes(plan, plan.top_diffs[0]);
    if (plan.propagate_down[0]) {
      const TensorId sums = plan.new_tensor("factor diff", {planes(plan)[1]});
      plan.device.channel_sums(plan.program, plan.step("gradient sums"),
                               {.a = dy, .b = as_planes(plan, plan.bottoms[1])}, {},
                               Gradient::plain(sums));
      plan.bottom_diffs[0] = plan.program.reshaped(sums, plan.bottom_shape(0));
    }
    if (plan.propagate_down[1]) {
      const TensorId down = plan.new_tensor("diff", planes(plan));
      map_channels<1, 1>(plan.program, plan.step("backward"),
                         [](const auto& d, const auto& c) { return c[0] * d[0]; }, down, {dy},
                         {factors(plan)});
      plan.bottom_diffs[1] = plan.program.reshaped(down, plan.bottom_shape(1));
    }
    if (plan.propagate_down[2]) plan.bottom_diffs[2] = plan.top_diffs[0];
    return {};
  }

 private:
  /// The planes of all images viewed as the channels of one image.
  static Shape planes(const LoweringContext& plan) {
    const Shape& x = plan.bottom_shape(1);
    return {1, x[0] * x[1], x.count(2)};
  }
  static TensorId as_planes(LoweringContext& plan, TensorId id) {
    return plan.program.reshaped(id, planes(plan));
  }
  static TensorId factors(LoweringContext& plan) {
    return plan.program.reshaped(plan.bottoms[0], {planes(plan)[1]});
  }
};

}  // namespace

extern const LayerType layer_axpy{
    .name = "Axpy",
    .min_bottoms = 3,
    .max_bottoms = 3,
    .create = create_layer<Axpy>,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) {
      return rows.bottom_axis == 0;
    }};

}  // namespace cafetiere
