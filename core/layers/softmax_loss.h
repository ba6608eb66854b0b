// SPDX-License-Identifier: Apache-2.0
// SoftmaxLoss: the base of losses of softmax probabilities. Bottoms: scores, labels (one per
// position), possibly more; tops: the loss (a scalar) and, optionally, the probabilities.
#pragma once

#include "core/layers/loss_steps.h"

namespace cafetiere {

class SoftmaxLoss : public Layer {
 public:
  using Layer::Layer;

 protected:
  static void shape_tops(LayerShapes& s) {
    s.tops[0] = {};
    if (s.tops.size() > 1) s.tops[1] = s.bottoms[0];
  }

  /// loss({probabilities, labels, extra}, position); `extra` is another tensor or kNoTensor.
  template <class F>
  void forward_loss(LoweringContext& plan, const ClassScores& s, TensorId extra, F loss,
                    const LossWeights& weights = {}) const {
    const TensorId x = plan.program.reshaped(plan.bottoms[0], s.shape());
    const TensorId prob = plan.new_tensor("prob", s.shape());
    plan.device.softmax(plan.program, plan.step("softmax"), x, prob);
    const LossNormalizer rule(param().loss_param(), s.outer, s.inner);
    plan.saved = {prob, extra,
                  emit_loss(plan, rule, {prob, plan.bottoms[1], extra}, loss, weights, s.classes)};
    if (plan.tops.size() > 1) plan.tops[1] = plan.program.reshaped(prob, plan.top_shapes[1]);
  }

  /// gradient({probabilities, labels, extra}, position) returns a function of (class, element). The
  /// second top has no gradient.
  template <class F>
  void backward_loss(LoweringContext& plan, const ClassScores& s, F gradient,
                     const LossWeights& weights = {}) const {
    const LossNormalizer rule(param().loss_param(), s.outer, s.inner);
    const TensorId down = plan.new_tensor("diff", s.shape());
    emit_loss_gradient(plan, s, rule, {plan.saved[0], plan.bottoms[1], plan.saved[1]},
                       plan.saved[2], plan.top_diffs[0], down, gradient, weights);
    plan.bottom_diffs[0] = plan.program.reshaped(down, plan.bottom_shape(0));
  }
};

}  // namespace cafetiere
