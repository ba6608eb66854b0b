// SPDX-License-Identifier: Apache-2.0
// MVN: normalises each image, or each channel of an image, to zero mean and, optionally, unit
// variance. Bottom of up to 4 axes; the top has 4 axes (N, C, H, W). No parameters.
#include <cmath>

#include "core/layers/normalize.h"

namespace cafetiere {
namespace {

class Mvn : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape& b = s.bottoms[0];
    if (b.axes() < 1 || b.axes() > 4) {
      return invalid_argument("needs a bottom of 1 to 4 axes (N, C, H, W), not " + b.str());
    }
    std::vector<int64_t> dims = b.dims();
    dims.resize(4, 1);
    s.tops[0] = Shape(std::move(dims));
    return {};
  }

  /// y = (x - mean) / (deviation + eps): eps is added outside the square root.
  Status forward(LoweringContext& plan) const override {
    const caffe::MVNParameter& p = param().mvn_param();
    const Shape view = rows(plan.top_shapes[0]), scalars{view[1]};
    const TensorId x = plan.program.reshaped(plan.bottoms[0], view);
    const TensorId mean = plan.new_tensor("mean", scalars);
    const TensorId variance = plan.new_tensor("variance", scalars);
    const TensorId inverse = plan.new_tensor("inverse deviation", scalars);
    const TensorId y = plan.new_tensor("top", view);
    plan.device.channel_moments(plan.program, plan.step("moments"), x, mean, variance);
    map(
        plan.program, plan.step("deviation"),
        [eps = p.eps(), scales = p.normalize_variance()](float v) {
          return scales ? 1 / (std::sqrt(v) + eps) : 1.f;
        },
        inverse, variance);
    normalize(plan, x, mean, inverse, y);
    plan.saved = {y, inverse};
    plan.tops[0] = plan.program.reshaped(y, plan.top_shapes[0]);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    const Shape view = rows(plan.top_shapes[0]);
    const TensorId dy = plan.program.reshaped(plan.top_diffs[0], view);
    const TensorId dx = plan.new_tensor("diff", view);
    if (param().mvn_param().normalize_variance()) {
      normalize_backward(plan, plan.saved[0], dy, plan.saved[1], dx);
    } else {
      subtract_mean(plan, dy, dx);
    }
    plan.bottom_diffs[0] = plan.program.reshaped(dx, plan.bottom_shape(0));
    return {};
  }

 private:
  /// (1, rows, values of a row).
  Shape rows(const Shape& top) const {
    const int axes = param().mvn_param().across_channels() ? 1 : 2;
    return {1, top.count(0, axes), top.count(axes)};
  }

  static void subtract_mean(LoweringContext& plan, TensorId dy, TensorId dx) {
    const Shape& shape = plan.program.shape(dy);
    const TensorId sum = plan.new_tensor("sum", {shape[1]});
    plan.device.channel_sums(plan.program, plan.step("gradient sums"), {.a = dy},
                             Gradient::plain(sum), {});
    map_channels<1, 1>(
        plan.program, plan.step("backward"),
        [count = float(shape[2])](const auto& d, const auto& c) { return d[0] - c[0] / count; }, dx,
        {dy}, {sum});
  }
};

}  // namespace

extern const LayerType layer_mvn{
    .name = "MVN",
    .create = create_layer<Mvn>,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      return rows.bottom_axis < (param.mvn_param().across_channels() ? 1 : 2);
    }};

}  // namespace cafetiere
