// SPDX-License-Identifier: Apache-2.0
// Convolution: y = W * x + b over any number of spatial axes, grouped and dilated.
// Bottom (N.., C, spatial..) to top (N.., num_output, spatial..); all bottoms share the weights.
#include "core/layers/conv_geometry.h"

namespace cafetiere {
namespace {

class Convolution : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    return shape_convolution(s, param().convolution_param(), false,
                             [this](const Shape& bottom) { return geometry(bottom); });
  }

  Status forward(LoweringContext& plan) const override {
    for (size_t i = 0; i < plan.bottoms.size(); ++i) {
      CFT_ASSIGN(const ConvGeometry g, geometry(plan.bottom_shape(i)));
      const TensorId src =
          with_shape(plan.program, plan.bottoms[i], image_shape(g.n, g.channels, g.in));
      const TensorId dst = plan.new_tensor("top", image_shape(g.n, g.outputs, g.out));
      plan.device.convolution(plan.program, plan.step("forward"), g, src, plan.params[0],
                              plan.params.size() > 1 ? plan.params[1] : kNoTensor, dst,
                              plan.fuse_relu);
      plan.tops[i] = with_shape(plan.program, dst, plan.top_shapes[i]);
    }
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    Gradient weights = plan.param_diffs[0];
    Gradient bias = plan.param_diffs.size() > 1 ? plan.param_diffs[1] : Gradient{};
    for (size_t i = 0; i < plan.bottoms.size(); ++i) {
      if (plan.top_diffs[i] == kNoTensor) continue;
      CFT_ASSIGN(const ConvGeometry g, geometry(plan.bottom_shape(i)));
      const TensorId diff =
          with_shape(plan.program, plan.top_diffs[i], image_shape(g.n, g.outputs, g.out));
      if (bias.tensor != kNoTensor) {
        plan.device.channel_sums(plan.program, plan.step("bias gradient"), {.a = diff}, bias, {});
        bias.add = true;
      }
      if (weights.tensor != kNoTensor) {
        const TensorId src =
            with_shape(plan.program, plan.bottoms[i], image_shape(g.n, g.channels, g.in));
        plan.device.convolution_backward_weights(plan.program, plan.step("weight gradient"), g, src,
                                                 diff, weights);
        weights.add = true;
      }
      if (!plan.propagate_down[i]) continue;
      const TensorId down = plan.new_tensor("diff", image_shape(g.n, g.channels, g.in));
      plan.device.convolution_backward_data(plan.program, plan.step("backward"), g, diff,
                                            plan.params[0], down);
      plan.bottom_diffs[i] = with_shape(plan.program, down, plan.bottom_shape(i));
    }
    return {};
  }

 private:
  Result<ConvGeometry> geometry(const Shape& bottom) const {
    return convolution_geometry(param().convolution_param(), bottom);
  }
};

}  // namespace

extern const LayerType layer_convolution{
    .name = "Convolution",
    .max_bottoms = -1,
    .max_tops = -1,
    .create = create_layer<Convolution>,
    .any_format = true,
    .applies_relu = true,
    .linear_in_channels =
        [](const caffe::LayerParameter& param) {
          return param.top_size() == 1 && param.convolution_param().axis() == 1;
        },
    .rows_apart = [](const caffe::LayerParameter& param,
                     const RowPath& rows) { return !rows.from(param.convolution_param().axis()); }};

}  // namespace cafetiere
