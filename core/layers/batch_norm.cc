// SPDX-License-Identifier: Apache-2.0
// BatchNorm: normalises each channel with batch or running statistics (Ioffe & Szegedy 2015).
// Blobs: running mean (C), running variance (C), their weight (1). Scale and shift are applied only
// with scale_bias (NVIDIA) or use_weight_bias (Intel), which add the blobs scale (C) and shift (C),
// or if the plan folds a following Scale layer into this one, whose blobs then come after these.
#include <cmath>

#include "core/layers/channel_scale.h"

namespace cafetiere {
namespace {

/// Whether the layer has its own scale and shift.
bool scales(const caffe::BatchNormParameter& p) {
  return p.scale_bias() || p.has_scale_filler() || p.has_bias_filler() || p.has_filler() ||
         (p.has_use_weight_bias() && p.use_weight_bias());
}

/// Indices of the scale and shift blobs.
constexpr size_t kScale = 3, kShift = 4;

class BatchNorm : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    if (s.bottoms[0].axes() < 2) {
      return invalid_argument("needs a bottom of at least 2 axes, not " + s.bottoms[0].str());
    }
    s.tops[0] = s.bottoms[0];
    // Fixed statistics get no observations, so they must not decay either.
    const caffe::BatchNormParameter& p = param().batch_norm_param();
    const float fraction =
        p.use_global_stats() && !p.update_global_stats() ? 1 : p.moving_average_fraction();
    const caffe::FillerParameter zero;
    const int64_t channels = s.bottoms[0][1];
    for (const Shape& shape : {Shape{channels}, Shape{channels}, Shape{1}}) {
      s.params.push_back({shape, zero, ParamKind::kStatistic, fraction});
    }
    if (!scales(p)) return {};
    if (!p.bias_term()) {
      return invalid_argument(
          "bias_term: false is not available; remove it, the shift starts at 0");
    }
    caffe::FillerParameter one;
    one.set_value(1);
    s.params.push_back({{channels},
                        p.has_scale_filler() ? p.scale_filler()
                        : p.has_filler()     ? p.filler()
                                             : one});
    s.params.push_back({{channels}, p.bias_filler()});
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const Shape channels{plan.bottom_shape(0)[1]};
    const TensorId mean = plan.new_tensor("mean", channels);
    const TensorId inverse = plan.new_tensor("inverse deviation", channels);
    if (global(plan)) {
      if (param().batch_norm_param().update_global_stats() && plan.train) observe_batch(plan);
      running_statistics(plan, mean, inverse);
    } else {
      batch_statistics(plan, mean, inverse);
    }
    if (plan.params.size() <= kScale) {
      normalize(plan, plan.bottoms[0], mean, inverse, plan.new_top(0));
      plan.saved = {inverse, plan.tops[0]};
      return {};
    }
    const TensorId shift = plan.params.size() > kShift ? plan.params[kShift] : kNoTensor;
    const auto normal = ScaledNormal::of(plan, mean, inverse, plan.params[kScale], shift);
    normal.forward(plan, plan.bottoms[0], plan.new_top(0));
    plan.saved = {mean, inverse, normal.factor};
    return {};
  }

  bool is_channel_affine() const override {
    const caffe::BatchNormParameter& p = param().batch_norm_param();
    return p.has_use_global_stats() ? p.use_global_stats() : param().phase() == caffe::TEST;
  }

  ChannelAffine channel_affine(LoweringContext& plan) const override {
    const Shape& channels = plan.program.shape(plan.params[0]);
    const TensorId mean = plan.new_tensor("mean", channels);
    const TensorId inverse = plan.new_tensor("inverse deviation", channels);
    running_statistics(plan, mean, inverse);
    if (!scales(param().batch_norm_param())) {
      const auto shift = [](float m, float i) { return -m * i; };
      return {inverse, per_channel_map(plan, "shift", shift, mean, inverse)};
    }
    const TensorId scale = per_channel_map(
        plan, "scale", [](float i, float s) { return i * s; }, inverse, plan.params[kScale]);
    return {scale, per_channel_map(
                       plan, "shift", [](float b, float m, float s) { return b - m * s; },
                       plan.params[kShift], mean, scale)};
  }

  /// With running statistics, dx = dy / deviation.
  Status backward(LoweringContext& plan) const override {
    const TensorId dy = plan.top_diffs[0];
    if (plan.params.size() > kScale) {
      scaled_normal_backward(
          plan, {.mean = plan.saved[0], .inverse = plan.saved[1], .factor = plan.saved[2]},
          plan.bottoms[0], dy,
          {.scale = plan.param_diffs[kScale],
           .shift = plan.param_diffs.size() > kShift ? plan.param_diffs[kShift] : Gradient{},
           .by_batch = !global(plan),
           .down = plan.propagate_down[0]});
      return {};
    }
    if (!plan.propagate_down[0]) return {};
    const TensorId inverse = plan.saved[0];
    if (global(plan)) {
      scale_channels(plan, dy, inverse, plan.new_bottom_diff(0));
    } else {
      normalize_backward(plan, plan.saved[1], dy, inverse, plan.new_bottom_diff(0));
    }
    return {};
  }

 private:
  bool global(const LoweringContext& plan) const {
    const caffe::BatchNormParameter& p = param().batch_norm_param();
    return p.has_use_global_stats() ? p.use_global_stats() : !plan.train;
  }

  void batch_statistics(LoweringContext& plan, TensorId mean, TensorId inverse) const {
    const Shape& shape = plan.bottom_shape(0);
    const float eps = param().batch_norm_param().eps();
    const float fraction = param().batch_norm_param().moving_average_fraction();
    const TensorId variance = plan.new_tensor("variance", {shape[1]});
    plan.device.channel_moments(plan.program, plan.step("moments"), plan.bottoms[0], mean,
                                variance);
    map(
        plan.program, plan.step("deviation"), [=](float v) { return 1 / std::sqrt(v + eps); },
        inverse, variance);
    const float count = float(shape.count() / shape[1]);
    const float unbiased = count > 1 ? count / (count - 1) : 1;
    observe(plan, 0, mean, 1, fraction);
    observe(plan, 1, variance, unbiased, fraction);
    observe(plan, 2, kNoTensor, 1, fraction);
  }

  /// Observes the batch's statistics while normalising with the stored ones.
  void observe_batch(LoweringContext& plan) const {
    const Shape channels{plan.bottom_shape(0)[1]};
    batch_statistics(plan, plan.new_tensor("batch mean", channels),
                     plan.new_tensor("batch inverse deviation", channels));
  }

  void running_statistics(LoweringContext& plan, TensorId mean, TensorId inverse) const {
    const float eps = param().batch_norm_param().eps();
    Program& p = plan.program;
    const int64_t channels = p.shape(plan.params[0]).count();
    Step step;
    step.name = plan.step("statistics");
    step.kernel = "scalar";
    for (size_t i = 0; i < 3; ++i) step.reads.push_back(p.read(plan.params[i], Layout::kRowMajor));
    step.writes = {p.write(mean, Layout::kRowMajor), p.write(inverse, Layout::kRowMajor)};
    step.make = [=, reads = step.reads, writes = step.writes](const Binder& at) {
      const float *m = at(reads[0]), *v = at(reads[1]), *weight = at(reads[2]);
      float *to_mean = at(writes[0]), *to_inverse = at(writes[1]);
      return Kernel{1, [=](int) {
                      const float factor = *weight == 0 ? 0 : 1 / *weight;
                      for (int64_t c = 0; c < channels; ++c) {
                        to_mean[c] = m[c] * factor;
                        to_inverse[c] = 1 / std::sqrt(v[c] * factor + eps);
                      }
                    }};
    };
    p.step(std::move(step));
  }
};

}  // namespace

extern const LayerType layer_batch_norm{
    .name = "BatchNorm",
    .create = create_layer<BatchNorm>,
    .any_format = true,
    .applies_scale =
        [](const caffe::LayerParameter& param) { return !scales(param.batch_norm_param()); },
    .rows_apart =
        [](const caffe::LayerParameter& param, const RowPath&) {
          const caffe::BatchNormParameter& p = param.batch_norm_param();
          return !p.has_use_global_stats() || p.use_global_stats();
        }};

}  // namespace cafetiere
