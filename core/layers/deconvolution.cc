// SPDX-License-Identifier: Apache-2.0
// Deconvolution: transposed convolution, y = W^T * x + b. Bottom (N.., C, spatial..); top (N..,
// num_output, stride (in - 1) + dilation (kernel - 1) + 1 - 2 pad); weights (C, num_output / group,
// kernel..). With num_output = group = C and a bilinear filler it upsamples images.
#include "core/device/map.h"
#include "core/layers/conv_geometry.h"

namespace cafetiere {
namespace {

class Deconvolution : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    return shape_convolution(s, param().convolution_param(), true,
                             [this](const Shape& bottom) { return geometry(bottom); });
  }

  Status forward(LoweringContext& plan) const override {
    Program& p = plan.program;
    for (size_t i = 0; i < plan.bottoms.size(); ++i) {
      CFT_ASSIGN(const ConvGeometry g, geometry(plan.bottom_shape(i)));
      const TensorId x = with_shape(p, plan.bottoms[i], image_shape(g.n, g.outputs, g.out));
      TensorId y = plan.new_tensor("top", image_shape(g.n, g.channels, g.in));
      plan.device.convolution_backward_data(p, plan.step("forward"), g, x, plan.params[0], y);
      if (plan.params.size() > 1) {
        const TensorId sum = plan.new_tensor("top with bias", p.shape(y));
        map_channels<1, 1>(p, plan.step("bias"),
                           [](const auto& v, const auto& b) { return v[0] + b[0]; }, sum, {y},
                           {plan.params[1]});
        y = sum;
      }
      plan.tops[i] = with_shape(p, y, plan.top_shapes[i]);
    }
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    Program& p = plan.program;
    Gradient weights = plan.param_diffs[0];
    Gradient bias = plan.param_diffs.size() > 1 ? plan.param_diffs[1] : Gradient{};
    for (size_t i = 0; i < plan.bottoms.size(); ++i) {
      if (plan.top_diffs[i] == kNoTensor) continue;
      CFT_ASSIGN(const ConvGeometry g, geometry(plan.bottom_shape(i)));
      const TensorId dy = with_shape(p, plan.top_diffs[i], image_shape(g.n, g.channels, g.in));
      if (bias.tensor != kNoTensor) {
        plan.device.channel_sums(p, plan.step("bias gradient"), {.a = dy}, bias, {});
        bias.add = true;
      }
      const Shape in = image_shape(g.n, g.outputs, g.out);
      if (weights.tensor != kNoTensor) {
        plan.device.convolution_backward_weights(p, plan.step("weight gradient"), g, dy,
                                                 with_shape(p, plan.bottoms[i], in), weights);
        weights.add = true;
      }
      if (!plan.propagate_down[i]) continue;
      const TensorId dx = plan.new_tensor("diff", in);
      plan.device.convolution(p, plan.step("backward"), g, dy, plan.params[0], kNoTensor, dx,
                              false);
      plan.bottom_diffs[i] = with_shape(p, dx, plan.bottom_shape(i));
    }
    return {};
  }

 private:
  /// The convolution that maps top to bottom.
  Result<ConvGeometry> geometry(const Shape& bottom) const {
    CFT_ASSIGN(ConvGeometry g, conv_geometry(param().convolution_param(), bottom));
    std::swap(g.channels, g.outputs);
    std::swap(g.in, g.out);
    for (size_t i = 0; i < g.out.size(); ++i) {
      const int64_t extent = g.dilation[i] * (g.kernel[i] - 1) + 1;
      g.in.push_back(g.stride[i] * (g.out[i] - 1) + extent - 2 * g.pad[i]);
      if (g.in.back() > 0) continue;
      return invalid_argument(
          fmt::format("pad {} takes all of the output of spatial axis {} away (input {}, stride "
                      "{}, kernel with dilation {}); use less",
                      g.pad[i], i, bottom.str(), g.stride[i], extent));
    }
    return g;
  }
};

}  // namespace

extern const LayerType layer_deconvolution{
    .name = "Deconvolution",
    .max_bottoms = -1,
    .max_tops = -1,
    .create = create_layer<Deconvolution>,
    .any_format = true,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      return !rows.from(param.convolution_param().axis());
    }};

}  // namespace cafetiere
