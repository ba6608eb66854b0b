// SPDX-License-Identifier: Apache-2.0
// BN: batch normalisation with scale and shift; two different layers of this name exist. That of
// TSN, PSPNet and ICNet has the blobs slope, bias, running mean and running variance, each (1, C,
// 1, 1). SegNet's, recognised by scale_filler, shift_filler or bn_mode, has scale and shift: it
// normalises with the batch's statistics in both phases (LEARN; tops 2 and 3 are mean and variance)
// or only applies scale and shift (INFERENCE).
#include <cmath>

#include "core/layers/channel_scale.h"

namespace cafetiere {
namespace {

using BNParam = caffe::BNParameter;

constexpr size_t kBnScale = 0, kBnShift = 1, kBnMean = 2, kBnVariance = 3;
constexpr float kSegNetEps = 1e-9F;

bool is_segnet(const BNParam& p) {
  return p.has_scale_filler() || p.has_shift_filler() || p.has_bn_mode();
}

class BN : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape& bottom = s.bottoms[0];
    if (bottom.axes() < 2) {
      return invalid_argument("needs a bottom of at least 2 axes, not " + bottom.str());
    }
    const BNParam& p = param().bn_param();
    s.tops[0] = bottom;
    if (s.tops.size() > 1 && (!is_segnet(p) || !by_batch(false))) {
      return invalid_argument("only SegNet's BN in mode LEARN gives mean and variance as tops");
    }
    const Shape blob{1, bottom[1], 1, 1};
    for (size_t i = 1; i < s.tops.size(); ++i) s.tops[i] = blob;
    if (is_segnet(p)) {
      s.params = {{blob, p.scale_filler()}, {blob, p.shift_filler()}};
      return {};
    }
    // Frozen blobs get no observations, so they must not decay either.
    const ParamKind learned = p.frozen() ? ParamKind::kStatistic : ParamKind::kLearned;
    const float fraction = p.frozen() ? 1 : p.momentum();
    caffe::FillerParameter variance;
    variance.set_value(p.frozen() ? 1 : 0);
    s.params = {{blob, p.slope_filler(), learned},
                {blob, p.bias_filler(), learned},
                {blob, caffe::FillerParameter(), ParamKind::kStatistic, fraction},
                {blob, variance, ParamKind::kStatistic, fraction}};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const TensorId x = plan.bottoms[0], scale = per_channel(plan, kBnScale);
    const TensorId shift = per_channel(plan, kBnShift);
    if (!normalises()) {
      map_channels<1, 2>(plan.program, plan.step("forward"),
                         [](const auto& v, const auto& c) { return v[0] * c[0] + c[1]; },
                         plan.new_top(0), {x}, {scale, shift});
      return {};
    }
    TensorId mean = kNoTensor, inverse = kNoTensor;
    if (by_batch(plan.train)) {
      const Shape channels{plan.bottom_shape(0)[1]};
      mean = plan.new_tensor("mean", channels);
      const TensorId variance = plan.new_tensor("variance", channels);
      plan.device.channel_moments(plan.program, plan.step("moments"), x, mean, variance);
      inverse = inverse_of(plan, variance);
      gather(plan, mean, variance);
    } else {
      mean = per_channel(plan, kBnMean);
      inverse = inverse_of(plan, per_channel(plan, kBnVariance));
    }
    const auto normal = ScaledNormal::of(plan, mean, inverse, scale, shift);
    normal.forward(plan, x, plan.new_top(0));
    plan.saved = {mean, inverse, normal.factor};
    return {};
  }

  bool is_channel_affine() const override {
    return !by_batch(param().phase() == caffe::TRAIN) && param().top_size() == 1;
  }

  ChannelAffine channel_affine(LoweringContext& plan) const override {
    const TensorId slope = per_channel(plan, kBnScale), bias = per_channel(plan, kBnShift);
    if (!normalises()) return {slope, bias};
    const TensorId inverse = inverse_of(plan, per_channel(plan, kBnVariance));
    const TensorId scale = per_channel_map(
        plan, "scale", [](float i, float s) { return i * s; }, inverse, slope);
    const TensorId shift = per_channel_map(
        plan, "shift", [](float b, float m, float s) { return b - m * s; }, bias,
        per_channel(plan, kBnMean), scale);
    return {scale, shift};
  }

  Status backward(LoweringContext& plan) const override {
    const bool down = plan.propagate_down[0];
    if (!is_segnet(param().bn_param()) && param().bn_param().frozen()) {
      plan.param_diffs[kBnScale] = plan.param_diffs[kBnShift] = {};  // as for statistics
    }
    const TensorId x = plan.bottoms[0], dy = plan.top_diffs[0];
    const Gradient scale = plan.param_diffs[kBnScale], shift = plan.param_diffs[kBnShift];
    if (normalises()) {
      scaled_normal_backward(
          plan, {.mean = plan.saved[0], .inverse = plan.saved[1], .factor = plan.saved[2]}, x, dy,
          {.scale = scale, .shift = shift, .by_batch = by_batch(plan.train), .down = down});
      return {};
    }
    const bool learned = scale.tensor != kNoTensor;
    if (learned || shift.tensor != kNoTensor) {
      plan.device.channel_sums(plan.program, plan.step("gradients"),
                               {.a = dy, .b = learned ? x : kNoTensor}, shift, scale);
    }
    if (down) scale_channels(plan, dy, per_channel(plan, kBnScale), plan.new_bottom_diff(0));
    return {};
  }

 private:
  /// In SegNet's INFERENCE mode, scale and shift already include the statistics.
  bool normalises() const {
    const BNParam& p = param().bn_param();
    return !is_segnet(p) || p.bn_mode() == BNParam::LEARN;
  }
  bool by_batch(bool train) const {
    const BNParam& p = param().bn_param();
    return is_segnet(p) ? p.bn_mode() == BNParam::LEARN : train && !p.frozen();
  }

  TensorId inverse_of(LoweringContext& plan, TensorId variance) const {
    const BNParam& p = param().bn_param();
    const float eps = is_segnet(p) ? kSegNetEps : p.eps();
    return per_channel_map(
        plan, "inverse deviation", [eps](float v) { return 1 / std::sqrt(v + eps); }, variance);
  }

  /// Updates the running statistics with the batch's, or outputs the batch's as tops.
  void gather(LoweringContext& plan, TensorId mean, TensorId variance) const {
    if (is_segnet(param().bn_param())) {
      if (plan.tops.size() > 1) plan.tops[1] = plan.program.reshaped(mean, plan.top_shapes[1]);
      if (plan.tops.size() > 2) plan.tops[2] = plan.program.reshaped(variance, plan.top_shapes[2]);
      return;
    }
    const float momentum = param().bn_param().momentum();
    observe(plan, kBnMean, mean, 1 - momentum, momentum);
    observe(plan, kBnVariance, variance, 1 - momentum, momentum);
  }
};

}  // namespace

extern const LayerType layer_bn{
    .name = "BN",
    .max_tops = 3,
    .create = create_layer<BN>,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath&) {
      return !is_segnet(param.bn_param()) || param.bn_param().bn_mode() == BNParam::INFERENCE;
    }};

}  // namespace cafetiere
