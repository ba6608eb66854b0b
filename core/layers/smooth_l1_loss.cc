// SPDX-License-Identifier: Apache-2.0
// SmoothL1Loss: the sum of the smooth L1 function e of a weighted difference, divided by the batch
// size. Bottoms: predictions p, targets t and no weights, one (SSD: d = w (p - t)) or two (Fast
// R-CNN: w_out e(w_in (p - t))); top: the loss (a scalar).
#include "core/layers/loss_steps.h"
#include "core/layers/smooth_l1.h"

namespace cafetiere {
namespace {

class SmoothL1Loss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    if (!(param().smooth_l1_loss_param().sigma() > 0)) {
      return invalid_argument("sigma must be above 0");
    }
    const Shape& first = s.bottoms[0];
    for (const Shape& shape : s.bottoms) {
      if (first.axes() > 0 && first[0] > 0 && shape.count() == first.count()) continue;
      return invalid_argument("the bottoms must have one size: " + first.str() + " and " +
                              shape.str());
    }
    s.tops[0] = {};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    plan.saved = {emit_loss(plan, rule(plan), plan.bottoms,
                            [e = function(), n = plan.bottoms.size()](const auto& in, int64_t i) {
                              const double out = n > 3 ? in[3][i] : 1.F;
                              return out * e.value(SmoothL1::difference(in, n, i));
                            })};
    return {};
  }

  /// A single weight applies to the difference only: SSD's gradient has it inside the slope, not
  /// outside.
  Status backward(LoweringContext& plan) const override {
    const int64_t count = plan.bottom_shape(0).count();
    for (size_t b = 0; b < 2; ++b) {
      if (!plan.propagate_down[b]) continue;
      const float sign = b == 0 ? 1 : -1;
      emit_loss_gradient(plan, {.outer = count, .classes = 1, .inner = 1}, rule(plan), plan.bottoms,
                         plan.saved[0], plan.top_diffs[0], plan.new_bottom_diff(b),
                         [=, e = function(), n = plan.bottoms.size()](const auto& in, int64_t i) {
                           const float weight = n > 3 ? in[2][i] * in[3][i] : 1.F;
                           const float slope =
                               sign * weight * e.slope(SmoothL1::difference(in, n, i));
                           return [slope](int64_t, int64_t) { return slope; };
                         });
    }
    return {};
  }

 private:
  SmoothL1 function() const {
    const float sigma = param().smooth_l1_loss_param().sigma();
    return {sigma * sigma};
  }
  /// Every element is a position; the divisor is the batch size.
  static LossNormalizer rule(const LoweringContext& plan) {
    const Shape& shape = plan.bottom_shape(0);
    LossNormalizer rule(shape[0]);
    rule.inner = shape.count(1);
    return rule;
  }
};

}  // namespace

extern const LayerType layer_smooth_l1_loss{.name = "SmoothL1Loss",
                                            .min_bottoms = 2,
                                            .max_bottoms = 4,
                                            .create = create_layer<SmoothL1Loss>,
                                            .loss = true};

}  // namespace cafetiere
