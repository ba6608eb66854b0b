// SPDX-License-Identifier: Apache-2.0
// PReLU: y = x above 0, a x below, with a learned slope a per channel or for all channels (He et
// al. 2015). Blob 0: the slopes, (C) or a scalar; initialised to 0.25 unless a filler is given.
#include <algorithm>

#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class PReLU : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::PReLUParameter& p = param().prelu_param();
    const Shape& bottom = s.bottoms[0];
    if (bottom.axes() < 2) {
      return invalid_argument("needs a bottom of at least 2 axes, not " + bottom.str());
    }
    caffe::FillerParameter quarter;
    quarter.set_value(0.25F);
    s.tops[0] = bottom;
    s.params.push_back(
        {p.channel_shared() ? Shape{} : Shape{bottom[1]}, p.has_filler() ? p.filler() : quarter});
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const TensorId x = view(plan, plan.bottoms[0]);
    const TensorId top = plan.new_tensor("top", plan.program.shape(x));
    map_channels<1, 1>(plan.program, plan.step("forward"),
                       [](const auto& x, const auto& a) { return x[0] > 0 ? x[0] : a[0] * x[0]; },
                       top, {x}, {plan.params[0]});
    plan.tops[0] = back(plan, top);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    const TensorId x = view(plan, plan.bottoms[0]), dy = view(plan, plan.top_diffs[0]);
    if (plan.param_diffs[0].tensor != kNoTensor) {
      const TensorId below = plan.new_tensor("below 0", plan.program.shape(x));
      map(
          plan.program, plan.step("below 0"), [](float v) { return std::min(v, 0.F); }, below, x);
      plan.device.channel_sums(plan.program, plan.step("gradient"), {.a = dy, .b = below}, {},
                               plan.param_diffs[0]);
    }
    if (!plan.propagate_down[0]) return {};
    const TensorId down = plan.new_tensor("diff", plan.program.shape(x));
    map_channels<2, 1>(plan.program, plan.step("backward"),
                       [](const auto& d, const auto& a) { return d[1] > 0 ? d[0] : a[0] * d[0]; },
                       down, {dy, x}, {plan.params[0]});
    plan.bottom_diffs[0] = back(plan, down);
    return {};
  }

 private:
  /// Reshapes the tensor to a single channel if there is a single slope, and back.
  TensorId view(LoweringContext& plan, TensorId id) const {
    const Shape& shape = plan.bottom_shape(0);
    if (!param().prelu_param().channel_shared()) return id;
    return plan.program.reshaped(id, {shape[0], 1, shape.count(1)});
  }
  TensorId back(LoweringContext& plan, TensorId id) const {
    if (!param().prelu_param().channel_shared()) return id;
    return plan.program.reshaped(id, plan.bottom_shape(0));
  }
};

}  // namespace

extern const LayerType layer_prelu{
    .name = "PReLU", .create = create_layer<PReLU>, .any_format = true, .rows_apart = always_apart};

}  // namespace cafetiere
