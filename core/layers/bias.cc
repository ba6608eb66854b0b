// SPDX-License-Identifier: Apache-2.0
// Bias: y = x + b, where b covers `num_axes` axes starting at `axis`. With one bottom, b is learned
// (blob 0); with two, b is the second bottom.
#include "core/device/map.h"
#include "core/layers/axis_span.h"

namespace cafetiere {
namespace {

class Bias : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const AxisSpan span, AxisSpan::of(param().bias_param(), s));
    s.tops[0] = s.bottoms[0];
    if (s.bottoms.size() == 1) s.params.push_back({span.operand, param().bias_param().filler()});
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const AxisSpan span, AxisSpan::of(param().bias_param(), plan));
    const TensorId x = span.view(plan.program, plan.bottoms[0]);
    const TensorId top = plan.new_tensor("top", plan.program.shape(x));
    map_channels<1, 1>(plan.program, plan.step("forward"),
                       [](const auto& x, const auto& c) { return x[0] + c[0]; }, top, {x},
                       {span_operand(plan)});
    plan.tops[0] = span.back(plan.program, top, plan.top_shapes[0]);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    CFT_ASSIGN(const AxisSpan span, AxisSpan::of(param().bias_param(), plan));
    if (const Gradient bias = span_gradient(plan); bias.tensor != kNoTensor) {
      plan.device.channel_sums(plan.program, plan.step("gradient"),
                               {.a = span.view(plan.program, plan.top_diffs[0])}, bias, {});
    }
    if (plan.propagate_down[0]) plan.bottom_diffs[0] = plan.top_diffs[0];
    return {};
  }
};

}  // namespace

extern const LayerType layer_bias{.name = "Bias",
                                  .max_bottoms = 2,
                                  .create = create_layer<Bias>,
                                  .any_format = true,
                                  .rows_apart = always_apart};

}  // namespace cafetiere
