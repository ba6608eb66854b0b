// SPDX-License-Identifier: Apache-2.0
// RowNorm: the base of LayerNorm and GroupNorm. Normalises each row of a tensor to zero mean and
// unit variance, then applies a learned scale and shift per channel. Blobs: [scale, shift].
#pragma once

#include <cmath>

#include "core/layers/normalize.h"

namespace cafetiere {

class RowNorm : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const View v, view(s.bottoms[0]));
    if (!(v.eps >= 0)) return invalid_argument("eps must not be negative");
    s.tops[0] = s.bottoms[0];
    if (!v.scale_bias) return {};
    caffe::FillerParameter one;
    one.set_value(1);
    s.params.push_back({v.scale, one});
    s.params.push_back({v.scale, caffe::FillerParameter()});
    return {};
  }

  /// y = (x - mean) / sqrt(variance + eps) * scale + shift, with the biased variance.
  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const View v, view(plan.bottom_shape(0)));
    Program& p = plan.program;
    const Shape scalars{v.rows[1]};
    const TensorId x = p.reshaped(plan.bottoms[0], v.rows);
    const TensorId mean = plan.new_tensor("mean", scalars);
    const TensorId variance = plan.new_tensor("variance", scalars);
    const TensorId inverse = plan.new_tensor("inverse deviation", scalars);
    TensorId y = plan.new_tensor("normal", v.rows);
    plan.device.channel_moments(p, plan.step("moments"), x, mean, variance);
    map(
        p, plan.step("deviation"), [eps = v.eps](float s) { return 1 / std::sqrt(s + eps); },
        inverse, variance);
    normalize(plan, x, mean, inverse, y);
    plan.saved = {y, inverse};
    if (v.scale_bias) {
      const TensorId scaled = plan.new_tensor("top", v.channels);
      map_channels<1, 2>(p, plan.step("scale"),
                         [](const auto& s, const auto& c) { return s[0] * c[0] + c[1]; }, scaled,
                         {p.reshaped(y, v.channels)}, {scale(plan, 0), scale(plan, 1)});
      y = scaled;
    }
    plan.tops[0] = p.reshaped(y, plan.top_shapes[0]);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    CFT_ASSIGN(const View v, view(plan.bottom_shape(0)));
    Program& p = plan.program;
    TensorId dy = p.reshaped(plan.top_diffs[0], v.channels);
    if (v.scale_bias) {
      const Gradient of_scale = plan.param_diffs[0], of_shift = plan.param_diffs[1];
      const bool learned = of_scale.tensor != kNoTensor;
      const TensorId y = learned ? p.reshaped(plan.saved[0], v.channels) : kNoTensor;
      if (learned || of_shift.tensor != kNoTensor) {
        plan.device.channel_sums(p, plan.step("gradients"), {.a = dy, .b = y}, of_shift, of_scale);
      }
      if (!plan.propagate_down[0]) return {};
      const TensorId scaled = plan.new_tensor("scaled diff", v.channels);
      map_channels<1, 1>(p, plan.step("scale backward"),
                         [](const auto& d, const auto& c) { return d[0] * c[0]; }, scaled, {dy},
                         {scale(plan, 0)});
      dy = scaled;
    }
    if (!plan.propagate_down[0]) return {};
    const TensorId dx = plan.new_tensor("diff", v.rows);
    normalize_backward(plan, plan.saved[0], p.reshaped(dy, v.rows), plan.saved[1], dx);
    plan.bottom_diffs[0] = p.reshaped(dx, plan.bottom_shape(0));
    return {};
  }

 protected:
  /// The views of the bottom that a layer normalises and scales.
  struct View {
    Shape rows;      ///< (1, rows, values of a row)
    Shape channels;  ///< (.., channels, ..): axis 1 is that of scale and shift
    Shape scale;     ///< the shape of both blobs
    float eps;
    bool scale_bias;
  };
  virtual Result<View> view(const Shape& bottom) const = 0;

 private:
  static TensorId scale(LoweringContext& plan, size_t blob) {
    const TensorId id = plan.params[blob];
    return plan.program.reshaped(id, {plan.program.shape(id).count()});
  }
};

}  // namespace cafetiere
