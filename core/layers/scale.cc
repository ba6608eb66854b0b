// SPDX-License-Identifier: Apache-2.0
// Scale: y = a x [+ b], where a and b cover `num_axes` axes starting at `axis`. With one bottom, a
// is learned; with two, a is the second bottom. Blobs: [a][, b].
#include "core/device/map.h"
#include "core/layers/axis_span.h"

namespace cafetiere {
namespace {

/// Whether the layer learns one a, and one b, per channel.
bool is_channel_scale(const caffe::LayerParameter& param) {
  const caffe::ScaleParameter& p = param.scale_param();
  return param.bottom_size() == 1 && p.axis() == 1 && p.num_axes() == 1;
}

class Scale : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::ScaleParameter& p = param().scale_param();
    CFT_ASSIGN(const AxisSpan span, AxisSpan::of(p, s));
    s.tops[0] = s.bottoms[0];
    if (s.bottoms.size() == 1) {
      caffe::FillerParameter one;
      one.set_value(1);
      s.params.push_back({span.operand, p.has_filler() ? p.filler() : one});
    }
    if (p.bias_term()) s.params.push_back({span.operand, p.bias_filler()});
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const AxisSpan span, AxisSpan::of(param().scale_param(), plan));
    const TensorId x = span.view(plan.program, plan.bottoms[0]);
    const TensorId top = plan.new_tensor("top", plan.program.shape(x));
    if (param().scale_param().bias_term()) {
      map_channels<1, 2>(plan.program, plan.step("forward"),
                         [](const auto& x, const auto& c) { return x[0] * c[0] + c[1]; }, top, {x},
                         {span_operand(plan), plan.params.back()});
    } else {
      map_channels<1, 1>(plan.program, plan.step("forward"),
                         [](const auto& x, const auto& c) { return x[0] * c[0]; }, top, {x},
                         {span_operand(plan)});
    }
    plan.tops[0] = span.back(plan.program, top, plan.top_shapes[0]);
    return {};
  }

  bool is_channel_affine() const override { return is_channel_scale(param()); }

  ChannelAffine channel_affine(LoweringContext& plan) const override {
    const bool shifts = param().scale_param().bias_term();
    return {plan.params[0], shifts ? plan.params[1] : kNoTensor};
  }

  Status backward(LoweringContext& plan) const override {
    CFT_ASSIGN(const AxisSpan span, AxisSpan::of(param().scale_param(), plan));
    const TensorId x = span.view(plan.program, plan.bottoms[0]);
    const TensorId dy = span.view(plan.program, plan.top_diffs[0]);
    const Gradient scale = span_gradient(plan);
    Gradient bias;
    if (param().scale_param().bias_term()) bias = plan.param_diffs.back();
    const bool dot = scale.tensor != kNoTensor;
    if (dot || bias.tensor != kNoTensor) {
      plan.device.channel_sums(plan.program, plan.step("gradients"),
                               {.a = dy, .b = dot ? x : kNoTensor}, bias, scale);
    }
    if (!plan.propagate_down[0]) return {};
    const TensorId down = plan.new_tensor("diff", plan.program.shape(x));
    map_channels<1, 1>(plan.program, plan.step("backward"),
                       [](const auto& d, const auto& c) { return d[0] * c[0]; }, down, {dy},
                       {span_operand(plan)});
    plan.bottom_diffs[0] = span.back(plan.program, down, plan.bottom_shape(0));
    return {};
  }
};

}  // namespace

extern const LayerType layer_scale{.name = "Scale",
                                   .max_bottoms = 2,
                                   .create = create_layer<Scale>,
                                   .any_format = true,
                                   .is_channel_scale = is_channel_scale,
                                   .rows_apart = always_apart};

}  // namespace cafetiere
