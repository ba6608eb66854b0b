// SPDX-License-Identifier: Apache-2.0
// SoftmaxWithLossOHEM (R-FCN): SoftmaxWithLoss that can also output the loss of each position, for
// BoxAnnotatorOHEM. Bottoms: scores, labels; tops: the loss (a scalar) and, optionally, the
// probabilities and the losses of the positions, 0 for ignored labels.
#include <cfloat>

#include "core/device/vector_math.h"
#include "core/layers/softmax_loss.h"

namespace cafetiere {
namespace {

class SoftmaxWithLossOHEM : public SoftmaxLoss {
 public:
  using SoftmaxLoss::SoftmaxLoss;

  Status shape(LayerShapes& s) const override {
    CFT_TRY(scores(s.bottoms[0], s.bottoms[1]).status());
    shape_tops(s);
    if (s.tops.size() > 2) s.tops[2] = s.bottoms[1];
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const ClassScores s, scores(plan.bottom_shape(0), plan.bottom_shape(1)));
    forward_loss(plan, s, kNoTensor,
                 [=](const auto& in, int64_t i) { return at(s, in[0], in[1], i); });
    if (plan.tops.size() < 3) return {};
    const LossNormalizer rule(param().loss_param(), s.outer, s.inner);
    range_step(plan.program, plan.step("losses"), {plan.saved[0], plan.bottoms[1]},
               {plan.new_top(2)}, s.outer * s.inner,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t i = begin; i < end; ++i) {
                   out[0][i] = rule.counts(in[1], i) ? at(s, in[0], in[1], i) : 0.F;
                 }
               });
    return {};
  }

  /// Uses the gradient of the first top only.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0] || plan.top_diffs[0] == kNoTensor) return {};
    CFT_ASSIGN(const ClassScores s, scores(plan.bottom_shape(0), plan.bottom_shape(1)));
    backward_loss(plan, s, [=](const auto& in, int64_t i) {
      return [prob = in[0], label = s.class_of(in[1][i])](int64_t c, int64_t e) {
        return prob[e] - (c == label ? 1.F : 0.F);
      };
    });
    return {};
  }

 private:
  Result<ClassScores> scores(const Shape& bottom, const Shape& labels) const {
    return ClassScores::along(bottom, param().softmax_param().axis(), labels);
  }
  static float at(const ClassScores& s, const float* prob, const float* labels, int64_t i) {
    return -vec::log(std::max(prob[s.at(i, s.class_of(labels[i]))], FLT_MIN));
  }
};

}  // namespace

extern const LayerType layer_softmax_loss_ohem{
    .name = "SoftmaxWithLossOHEM",
    .min_bottoms = 2,
    .max_bottoms = 2,
    .max_tops = 3,
    .create = create_layer<SoftmaxWithLossOHEM>,
    .loss = true,
    .no_label = true,
    .labels = [](const caffe::LayerParameter& param, const Shape& scores) {
      return labels_along(scores, param.softmax_param().axis(), param.loss_param());
    }};

}  // namespace cafetiere
