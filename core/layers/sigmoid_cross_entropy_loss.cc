// SPDX-License-Identifier: Apache-2.0
// SigmoidCrossEntropyLoss: the sum of -(t log s(x) + (1 - t) log(1 - s(x))), where s is the
// sigmoid, divided by the number of images unless loss_param says otherwise. Bottoms: logits,
// targets in [0, 1], one per logit, and, optionally, weights (one per image or per logit); top: the
// loss (a scalar).
#include <cmath>

#include "core/device/vector_math.h"
#include "core/layers/loss_steps.h"

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
    return LossWeights::check(s.bottoms, 2, x[0], x.count());
  }

  Status forward(LoweringContext& plan) const override {
    plan.saved = {emit_loss(
        plan, rule(plan.bottom_shape(0)), {plan.bottoms[0], plan.bottoms[1]},
        [](const auto& in, int64_t i) {
          // log s(x) = min(x, 0) - log(1 + e^-|x|), which never overflows.
          const float x = in[0][i], t = in[1][i];
          return vec::log1p_of_fraction(vec::exp(-std::fabs(x))) - x * (t - (x >= 0 ? 1.f : 0.f));
        },
        weights(plan))};
    return {};
  }

  /// (s(x) - t) * weight / divisor; zero for ignored targets.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    const Shape& logits = plan.bottom_shape(0);
    emit_loss_gradient(
        plan, {.outer = logits.count(), .classes = 1, .inner = 1}, rule(logits),
        {plan.bottoms[0], plan.bottoms[1]}, plan.saved[0], plan.top_diffs[0],
        plan.new_bottom_diff(0),
        [](const auto& in, int64_t i) {
          const float slope = vec::sigmoid(in[0][i]) - in[1][i];
          return [slope](int64_t, int64_t) { return slope; };
        },
        weights(plan));
    return {};
  }

 private:
  static LossWeights weights(const LoweringContext& plan) {
    return LossWeights::of(plan, 2, plan.bottom_shape(0).count());
  }
  LossNormalizer rule(const Shape& logits) const {
    return {param().loss_param(), logits[0], logits.count(1), caffe::LossParameter::BATCH_SIZE};
  }
};

}  // namespace

extern const LayerType layer_sigmoid_cross_entropy_loss{
    .name = "SigmoidCrossEntropyLoss",
    .min_bottoms = 2,
    .max_bottoms = 3,
    .create = create_layer<SigmoidCrossEntropyLoss>,
    .loss = true,
    .no_label = true};

}  // namespace cafetiere
