// SPDX-License-Identifier: Apache-2.0
// SmoothL1LossOHEM (R-FCN): smooth L1 of w (prediction - target), summed over channels. Bottoms:
// predictions (N, C, ..), targets and, optionally, weights w; tops: the loss, normalised according
// to loss_param, and, optionally, the sum at each position (N, 1, ..). The gradient is not
// multiplied by w.
#include "core/layers/loss_steps.h"
#include "core/layers/smooth_l1.h"

namespace cafetiere {
namespace {

class SmoothL1LossOHEM : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape& first = s.bottoms[0];
    if (first.axes() < 2) {
      return invalid_argument("needs predictions (N, C, ..), not " + first.str());
    }
    for (const Shape& shape : s.bottoms) {
      if (shape.count() == first.count()) continue;
      return invalid_argument("the bottoms must have one size: " + first.str() + " and " +
                              shape.str());
    }
    s.tops[0] = {};
    if (s.tops.size() < 2) return {};
    s.tops[1] = first;
    s.tops[1][1] = 1;
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const ClassScores s = channels(plan);
    const auto loss = [s, n = plan.bottoms.size()](const auto& in, int64_t i) {
      double sum = 0;
      for (int64_t c = 0; c < s.classes; ++c) {
        sum += SmoothL1().value(SmoothL1::difference(in, n, s.at(i, c)));
      }
      return sum;
    };
    plan.saved = {emit_loss(plan, rule(s), plan.bottoms, loss)};
    if (plan.tops.size() < 2) return {};
    range_step(plan.program, plan.step("losses"), plan.bottoms, {plan.new_top(1)},
               s.outer * s.inner,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t i = begin; i < end; ++i) out[0][i] = float(loss(in, i));
               });
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (plan.top_diffs[0] == kNoTensor) return {};
    const ClassScores s = channels(plan);
    for (size_t b = 0; b < 2; ++b) {
      if (!plan.propagate_down[b]) continue;
      const float sign = b == 0 ? 1 : -1;
      emit_loss_gradient(plan, s, rule(s), plan.bottoms, plan.saved[0], plan.top_diffs[0],
                         plan.new_bottom_diff(b),
                         [sign, n = plan.bottoms.size()](const auto& in, int64_t) {
                           return [=](int64_t, int64_t e) {
                             return sign * SmoothL1().slope(SmoothL1::difference(in, n, e));
                           };
                         });
    }
    return {};
  }

 private:
  static ClassScores channels(const LoweringContext& plan) {
    const Shape& shape = plan.bottom_shape(0);
    return {.outer = shape[0], .classes = shape[1], .inner = shape.count(2)};
  }
  /// Every position counts.
  LossNormalizer rule(const ClassScores& s) const {
    LossNormalizer rule(param().loss_param(), s.outer, s.inner);
    rule.has_ignore = false;
    return rule;
  }
};

}  // namespace

extern const LayerType layer_smooth_l1_loss_ohem{.name = "SmoothL1LossOHEM",
                                                 .min_bottoms = 2,
                                                 .max_bottoms = 3,
                                                 .max_tops = 2,
                                                 .create = create_layer<SmoothL1LossOHEM>,
                                                 .loss = true};

}  // namespace cafetiere
