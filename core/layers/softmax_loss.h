// SPDX-License-Identifier: Apache-2.0
// SoftmaxLoss: what losses of softmax probabilities have in common. Bottoms: scores, labels (one a
// position), perhaps more; tops: the loss (a scalar) and, if asked, the probabilities.
#pragma once

#include "core/device/ref/ref_device.h"
#include "core/layers/class_scores.h"
#include "core/layers/loss_normalizer.h"

namespace cafetiere {

class SoftmaxLoss : public Layer {
 public:
  using Layer::Layer;

 protected:
  static void shape_tops(LayerShapes& s) {
    s.tops[0] = {};
    if (s.tops.size() > 1) s.tops[1] = s.bottoms[0];
  }

  /// loss({probabilities, labels, extra}, position); `extra` is a further tensor or kNoTensor.
  template <class F>
  void forward_loss(LayerPlan& plan, const ClassScores& s, TensorId extra, F loss) const {
    const TensorId x = plan.program.reshaped(plan.bottoms[0], s.shape());
    const TensorId prob = plan.new_tensor("prob", s.shape());
    plan.device.softmax(plan.program, plan.step("softmax"), x, prob);
    const LossNormalizer rule(param().loss_param(), s.outer, s.inner);
    ref_step(plan.program, plan.step("forward"), {prob, plan.bottoms[1], extra}, {plan.new_top(0)},
             [=](const auto& in, const auto& out, const RunContext&) {
               out[0][0] = rule.loss(in[1], [&](int64_t i) { return loss(in, i); });
             });
    plan.saved = {prob, extra};
    if (plan.tops.size() > 1) plan.tops[1] = plan.program.reshaped(prob, plan.top_shapes[1]);
  }

  /// gradient({probabilities, labels, extra}, position, dx) writes the position's classes. The
  /// second top has none.
  template <class F>
  void backward_loss(LayerPlan& plan, const ClassScores& s, F gradient) const {
    const LossNormalizer rule(param().loss_param(), s.outer, s.inner);
    const TensorId down = plan.new_tensor("diff", s.shape());
    ref_step(plan.program, plan.step("backward"),
             {plan.saved[0], plan.bottoms[1], plan.saved[1], plan.top_diffs[0]}, {down},
             [=](const auto& in, const auto& out, const RunContext&) {
               rule.gradient(in[1], in[3][0], out[0], s.count(),
                             [&](int64_t i) { gradient(in, i, out[0]); });
             });
    plan.bottom_diffs[0] = plan.program.reshaped(down, plan.bottom_shape(0));
  }
};

}  // namespace cafetiere
