// SPDX-License-Identifier: Apache-2.0
// ClassLoss: the base of losses that compare a row of scores with its label.
#pragma once

#include "core/layers/loss_steps.h"

namespace cafetiere {

/// Bottoms: scores (N, classes..) and N labels; top: the mean over rows (a scalar). `Formula` is
/// constructed from the layer's message and defines, for one row,
///   double loss(const float* scores, int64_t classes, int64_t label) const
///   float slope(float score, bool is_label) const, the derivative with respect to one score.
template <class Formula>
class ClassLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_TRY(ClassScores::of_rows(s.bottoms[0], s.bottoms[1]).status());
    s.tops[0] = {};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const ClassScores s, scores(plan));
    plan.saved = {emit_loss(
        plan, LossNormalizer(s.outer), {plan.bottoms[0], plan.bottoms[1]},
        [s, formula = Formula(param())](const auto& in, int64_t i) {
          return formula.loss(in[0] + s.at(i, 0), s.classes, s.class_of(in[1][i]));
        },
        {}, s.classes)};
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    CFT_ASSIGN(const ClassScores s, scores(plan));
    emit_loss_gradient(plan, s, LossNormalizer(s.outer), {plan.bottoms[0], plan.bottoms[1]},
                       plan.saved[0], plan.top_diffs[0], plan.new_bottom_diff(0),
                       [s, formula = Formula(param())](const auto& in, int64_t i) {
                         return [=, scores = in[0], label = s.class_of(in[1][i])](int64_t c,
                                                                                  int64_t e) {
                           return formula.slope(scores[e], c == label);
                         };
                       });
    return {};
  }

 private:
  static Result<ClassScores> scores(const LoweringContext& plan) {
    return ClassScores::of_rows(plan.bottom_shape(0), plan.bottom_shape(1));
  }
};

}  // namespace cafetiere
