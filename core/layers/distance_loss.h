// SPDX-License-Identifier: Apache-2.0
// DistanceLoss: the base of losses that sum a function of a - b.
#pragma once

#include "core/layers/loss_steps.h"

namespace cafetiere {

/// Bottoms: a and b of equal size and, optionally, image weights; top: the sum divided by the
/// number of images (a scalar). a and b have gradients. `Formula` is constructed from the layer's
/// message and defines
///   double loss(double d) const
///   float slope(float d) const, its derivative.
template <class Formula>
class DistanceLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape &a = s.bottoms[0], &b = s.bottoms[1];
    if (a.axes() == 0 || b.axes() == 0 || a[0] != b[0] || a.count() != b.count()) {
      return invalid_argument("the bottoms must have one batch size and element count: " + a.str() +
                              " and " + b.str());
    }
    CFT_TRY(Formula(param()).check());
    s.tops[0] = {};
    return LossWeights::check(s.bottoms, 2, a[0], a[0]);
  }

  Status forward(LoweringContext& plan) const override {
    const ClassScores rows = this->rows(plan);
    plan.saved = {emit_loss(
        plan, LossNormalizer(rows.outer), {plan.bottoms[0], plan.bottoms[1]},
        [rows, formula = Formula(param())](const auto& in, int64_t n) {
          double sum = 0;
          for (int64_t i = rows.at(n, 0); i < rows.at(n + 1, 0); ++i) {
            sum += formula.loss(double(in[0][i]) - in[1][i]);
          }
          return sum;
        },
        weights(plan))};
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    const ClassScores rows = this->rows(plan);
    if (plan.propagate_down.size() > 2 && plan.propagate_down[2]) {
      return invalid_argument("weights have no gradient: set propagate_down: false for them");
    }
    for (size_t i = 0; i < 2; ++i) {
      if (!plan.propagate_down[i]) continue;
      emit_loss_gradient(
          plan, rows, LossNormalizer(rows.outer), {plan.bottoms[i], plan.bottoms[1 - i]},
          plan.saved[0], plan.top_diffs[0], plan.new_bottom_diff(i),
          [formula = Formula(param())](const auto& in, int64_t) {
            return [=, a = in[0], b = in[1]](int64_t, int64_t e) {
              return formula.slope(a[e] - b[e]);
            };
          },
          weights(plan));
    }
    return {};
  }

 private:
  /// One row per image.
  static ClassScores rows(const LoweringContext& plan) {
    const Shape& a = plan.bottom_shape(0);
    return {.outer = a[0], .classes = a.count(1), .inner = 1};
  }
  static LossWeights weights(const LoweringContext& plan) {
    return LossWeights::of(plan, 2, plan.bottom_shape(0)[0]);
  }
};

}  // namespace cafetiere
