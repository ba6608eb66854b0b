// SPDX-License-Identifier: Apache-2.0
// BatchNorm: normalises each channel by batch or by running statistics (Ioffe & Szegedy 2015),
// without scale and shift. Blobs: running mean (C), running variance (C), their weight (1).
#include <cmath>

#include "core/layers/normalize.h"

namespace cafetiere {
namespace {

class BatchNorm : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    if (s.bottoms[0].axes() < 2) {
      return invalid_argument("needs a bottom of at least 2 axes, not " + s.bottoms[0].str());
    }
    s.tops[0] = s.bottoms[0];
    // Fixed statistics are not observed, so nothing of them may fade.
    const caffe::BatchNormParameter& p = param().batch_norm_param();
    const float fraction = p.use_global_stats() ? 1 : p.moving_average_fraction();
    const caffe::FillerParameter zero;
    const int64_t channels = s.bottoms[0][1];
    for (const Shape& shape : {Shape{channels}, Shape{channels}, Shape{1}}) {
      s.params.push_back({shape, zero, ParamKind::kStatistic, fraction});
    }
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const Shape channels{plan.bottom_shape(0)[1]};
    const TensorId mean = plan.new_tensor("mean", channels);
    const TensorId inverse = plan.new_tensor("inverse deviation", channels);
    if (global(plan))
      running_statistics(plan, mean, inverse);
    else
      batch_statistics(plan, mean, inverse);
    normalize(plan, plan.bottoms[0], mean, inverse, plan.new_top(0));
    plan.saved = {inverse};
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
    const TensorId shift = plan.new_tensor("shift", channels);
    running_statistics(plan, mean, inverse);
    map(
        plan.program, plan.step("shift"), [](float m, float i) { return -m * i; }, shift, mean,
        inverse);
    return {inverse, shift};
  }

  /// With running statistics dx = dy / deviation.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    const TensorId inverse = plan.saved[0];
    const TensorId down = plan.new_bottom_diff(0);
    if (global(plan)) {
      map_channels<1, 1>(plan.program, plan.step("backward"),
                         [](const auto& d, const auto& c) { return d[0] * c[0]; }, down,
                         {plan.top_diffs[0]}, {inverse});
      return {};
    }
    normalize_backward(plan, plan.tops[0], plan.top_diffs[0], inverse, down);
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
    update_running_stats(plan, 0, mean, 1, fraction);
    update_running_stats(plan, 1, variance, unbiased, fraction);
    update_running_stats(plan, 2, kNoTensor, 1, fraction);
  }

  /// Hands this shard's statistic to the solver: weighted by its rows, and folded into that of the
  /// passes before it as Caffe does within a step.
  static void update_running_stats(LoweringContext& plan, size_t blob, TensorId value, float factor,
                                   float fraction) {
    if (plan.param_diffs[blob].tensor == kNoTensor) return;
    Program& p = plan.program;
    const int64_t count = p.shape(plan.params[blob]).count();
    Step step;
    step.name = plan.step("observe");
    step.kernel = "scalar";
    if (value != kNoTensor) step.reads = {p.read(value, Layout::kRowMajor)};
    step.writes = {p.write(plan.param_diffs[blob].tensor, Layout::kRowMajor)};
    step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
      const float* x = reads.empty() ? nullptr : at(reads[0]);
      float* to = at(write);
      const RunContext* run = at.run();
      return Kernel{1, [=](int) {
                      const float weight = factor * run->loss_scale;
                      for (int64_t i = 0; i < count; ++i) {
                        const float seen = (x ? x[i] : 1.f) * weight;
                        to[i] = run->accumulate ? fraction * to[i] + seen : seen;
                      }
                    }};
    };
    p.step(std::move(step));
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
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath&) {
      const caffe::BatchNormParameter& p = param.batch_norm_param();
      return !p.has_use_global_stats() || p.use_global_stats();
    }};

}  // namespace cafetiere
