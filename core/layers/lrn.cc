// SPDX-License-Identifier: Apache-2.0
// LRN: local response normalisation across channels or within a channel (Krizhevsky et al. 2012).
// y = x (k + alpha / n * sum x^2)^-beta over a window of local_size, which has n elements; dividing
// alpha by n follows Caffe.
#include "core/device/map.h"
#include "core/device/vector_math.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Lrn : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::LRNParameter& p = param().lrn_param();
    if (s.bottoms[0].axes() != 4) {
      return invalid_argument("needs a bottom of 4 axes (N, C, H, W), not " + s.bottoms[0].str());
    }
    if (p.local_size() % 2 == 0) return invalid_argument("local_size must be odd");
    s.tops[0] = s.bottoms[0];
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    if (within()) return forward_within(plan);
    const TensorId scale = plan.new_tensor("scale", plan.bottom_shape(0));
    plan.saved = {scale};
    const TensorId x = plan.bottoms[0];
    plan.device.lrn(plan.program, plan.step("forward"), across(), x, scale, plan.new_top(0));
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    if (within()) return backward_within(plan);
    plan.device.lrn_backward(plan.program, plan.step("backward"), across(), plan.bottoms[0],
                             plan.saved[0], plan.tops[0], plan.top_diffs[0],
                             plan.new_bottom_diff(0));
    return {};
  }

 private:
  bool within() const {
    return param().lrn_param().norm_region() == caffe::LRNParameter::WITHIN_CHANNEL;
  }
  LrnGeometry across() const {
    const caffe::LRNParameter& p = param().lrn_param();
    return {p.local_size(), p.alpha(), p.beta(), p.k()};
  }
  /// Within a channel, the sum is an average pooling of the squares, and k is fixed at 1.
  PoolGeometry pool(const Shape& s) const {
    const int64_t size = param().lrn_param().local_size();
    return {.max = false,
            .n = s[0],
            .channels = s[1],
            .in_h = s[2],
            .in_w = s[3],
            .out_h = s[2],
            .out_w = s[3],
            .kernel_h = size,
            .kernel_w = size,
            .pad_h = size / 2,
            .pad_w = size / 2};
  }

  Status forward_within(LoweringContext& plan) const {
    const float alpha = param().lrn_param().alpha(), beta = param().lrn_param().beta();
    const Shape& shape = plan.bottom_shape(0);
    const TensorId square = plan.new_tensor("square", shape), mean = plan.new_tensor("mean", shape);
    map(
        plan.program, plan.step("square"), [](float x) { return x * x; }, square, plan.bottoms[0]);
    plan.device.pooling(plan.program, plan.step("mean"), pool(shape), square, mean, kNoTensor);
    const TensorId x = plan.bottoms[0];
    map(
        plan.program, plan.step("forward"),
        [=](float v, float m) { return v * vec::pow(1 + alpha * m, -beta); }, plan.new_top(0), x,
        mean);
    plan.saved = {mean};
    return {};
  }

  /// With s = 1 + alpha mean: dx = dy s^-beta - 2 alpha beta x pool'(dy x s^(-beta - 1)).
  Status backward_within(LoweringContext& plan) const {
    const float alpha = param().lrn_param().alpha(), beta = param().lrn_param().beta();
    const Shape& shape = plan.bottom_shape(0);
    const TensorId inner = plan.new_tensor("inner", shape),
                   spread = plan.new_tensor("spread", shape);
    const TensorId x = plan.bottoms[0], dy = plan.top_diffs[0], mean = plan.saved[0];
    map(
        plan.program, plan.step("inner gradient"),
        [=](float d, float v, float m) { return d * v * vec::pow(1 + alpha * m, -beta - 1); },
        inner, dy, x, mean);
    plan.device.pooling_backward(plan.program, plan.step("spread"), pool(shape), inner, kNoTensor,
                                 spread);
    map(
        plan.program, plan.step("backward"),
        [=](float d, float v, float m, float p) {
          return d * vec::pow(1 + alpha * m, -beta) - 2 * alpha * beta * v * p;
        },
        plan.new_bottom_diff(0), dy, x, mean, spread);
    return {};
  }
};

}  // namespace

extern const LayerType layer_lrn{
    .name = "LRN",
    .create = create_layer<Lrn>,
    .any_format = true,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      const bool across = param.lrn_param().norm_region() == caffe::LRNParameter::ACROSS_CHANNELS;
      return across ? rows.bottom_axis != 1 : rows.bottom_axis < 2;
    }};

}  // namespace cafetiere
