// SPDX-License-Identifier: Apache-2.0
// ClassLoss: the frame of losses that compare a row of scores with its label.
#pragma once

#include "core/device/ref/ref_device.h"
#include "core/layers/class_scores.h"

namespace cafetiere {

/// Bottoms: scores (N, classes..), N labels; top: the mean over rows (a scalar). `Formula` is made of
/// the layer's message and has, for all rows at once,
///   double sum(const ClassScores&, const float* scores, const float* labels) const
///   void gradient(const ClassScores&, const float* scores, const float* labels, float weight,
///                 float* out) const, which writes weight * d sum / d score to every element.
template <class Formula>
class ClassLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_TRY(ClassScores::of_rows(s.bottoms[0], s.bottoms[1]).status());
    s.tops[0] = {};
    return {};
  }

  Status forward(LayerPlan& plan) const override {
    CFT_ASSIGN(const ClassScores s,
               ClassScores::of_rows(plan.bottom_shape(0), plan.bottom_shape(1)));
    ref_step(plan.program, plan.step("forward"), {plan.bottoms[0], plan.bottoms[1]},
             {plan.new_top(0)},
             [s, formula = Formula(param())](const auto& in, const auto& out, const RunContext&) {
               out[0][0] = float(formula.sum(s, in[0], in[1]) / double(s.outer));
             });
    return {};
  }

  Status backward(LayerPlan& plan) const override {
    if (!plan.propagate_down[0]) return {};
    CFT_ASSIGN(const ClassScores s,
               ClassScores::of_rows(plan.bottom_shape(0), plan.bottom_shape(1)));
    ref_step(plan.program, plan.step("backward"),
             {plan.bottoms[0], plan.bottoms[1], plan.top_diffs[0]}, {plan.new_bottom_diff(0)},
             [s, formula = Formula(param())](const auto& in, const auto& out, const RunContext&) {
               formula.gradient(s, in[0], in[1], in[2][0] / float(s.outer), out[0]);
             });
    return {};
  }
};

}  // namespace cafetiere
