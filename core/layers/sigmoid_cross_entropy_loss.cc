// SPDX-License-Identifier: Apache-2.0
// SigmoidCrossEntropyLoss: the sum of -(t log s(x) + (1 - t) log(1 - s(x))), s being the sigmoid,
// divided by the images unless loss_param says otherwise. Bottoms: logits, targets in [0, 1], one
// each; top: the loss (a scalar).
#include <cmath>

#include "core/device/ref/ref_device.h"
#include "core/graph/layer.h"
#include "core/layers/loss_normalizer.h"

namespace cafetiere {
namespace {

class SigmoidCrossEntropyLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape &x = s.bottoms[0], &t = s.bottoms[1];
    if (x.axes() == 0 || t.axes() == 0 || x[0] != t[0] || x.count() != t.count()) {
      return invalid_argument("needs one target for each logit: " + x.str() + " and " + t.str());
    }
    s.tops[0] = {};
    return {};
  }

  Status forward(LayerPlan& plan) const override {
    const LossNormalizer rule = this->rule(plan.bottom_shape(0));
    ref_step(plan.program, plan.step("forward"), {plan.bottoms[0], plan.bottoms[1]},
             {plan.new_top(0)}, [=](const auto& in, const auto& out, const RunContext&) {
               out[0][0] = rule.loss(in[1], [&](int64_t i) {
                 // log s(x) = min(x, 0) - log(1 + e^-|x|) overflows for no x.
                 const float x = in[0][i], t = in[1][i];
                 return std::log1p(std::exp(-std::fabs(x))) - x * (t - (x >= 0 ? 1.f : 0.f));
               });
             });
    return {};
  }

  /// (s(x) - t) * weight / divisor; zero where the target is ignored.
  Status backward(LayerPlan& plan) const override {
    if (!plan.propagate_down[0]) return {};
    const LossNormalizer rule = this->rule(plan.bottom_shape(0));
    ref_step(plan.program, plan.step("backward"),
             {plan.bottoms[0], plan.bottoms[1], plan.top_diffs[0]}, {plan.new_bottom_diff(0)},
             [=](const auto& in, const auto& out, const RunContext&) {
               rule.gradient(in[1], in[2][0], out[0], rule.outer * rule.inner, [&](int64_t i) {
                 out[0][i] = 0.5f * std::tanh(0.5f * in[0][i]) + 0.5f - in[1][i];
               });
             });
    return {};
  }

 private:
  LossNormalizer rule(const Shape& logits) const {
    return {param().loss_param(), logits[0], logits.count(1), caffe::LossParameter::BATCH_SIZE};
  }
};

}  // namespace

extern const LayerType layer_sigmoid_cross_entropy_loss{
    .name = "SigmoidCrossEntropyLoss",
    .min_bottoms = 2,
    .max_bottoms = 2,
    .min_tops = 1,
    .max_tops = 1,
    .create = create_layer<SigmoidCrossEntropyLoss>,
    .loss = true,
    .no_label = true};

}  // namespace cafetiere
