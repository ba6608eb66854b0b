// SPDX-License-Identifier: Apache-2.0
// SoftmaxWithLoss: the mean of -log softmax(x)[label]. Bottoms: scores, labels (one a position) and, if
// there are any, weights (one an image or a position); tops: the loss (a scalar) and, if asked, the
// probabilities.
#include "core/layers/softmax_loss.h"

#include <cfloat>

#include "core/device/vector_math.h"

namespace cafetiere {
namespace {

class SoftmaxWithLoss : public SoftmaxLoss {
 public:
  using SoftmaxLoss::SoftmaxLoss;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const ClassScores classes, scores(s.bottoms[0], s.bottoms[1]));
    CFT_TRY(LossWeights::check(s.bottoms, 2, classes.outer, classes.outer * classes.inner));
    shape_tops(s);
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const ClassScores s, scores(plan.bottom_shape(0), plan.bottom_shape(1)));
    forward_loss(
        plan, s, kNoTensor,
        [=](const auto& in, int64_t i) {
          return -vec::log(std::max(in[0][s.at(i, s.class_of(in[1][i]))], FLT_MIN));
        },
        weights(plan, s));
    return {};
  }

  /// (softmax(x) - onehot(label)) * weight / divisor; zero where the label is ignored.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0] || plan.top_diffs[0] == kNoTensor) return {};
    CFT_ASSIGN(const ClassScores s, scores(plan.bottom_shape(0), plan.bottom_shape(1)));
    backward_loss(
        plan, s,
        [=](const auto& in, int64_t i) {
          return [prob = in[0], label = s.class_of(in[1][i])](int64_t c, int64_t e) {
            return prob[e] - (c == label ? 1.f : 0.f);
          };
        },
        weights(plan, s));
    return {};
  }

 private:
  static LossWeights weights(const LoweringContext& plan, const ClassScores& s) {
    return LossWeights::of(plan, 2, s.outer * s.inner);
  }
  Result<ClassScores> scores(const Shape& bottom, const Shape& labels) const {
    return ClassScores::along(bottom, param().softmax_param().axis(), labels);
  }
};

}  // namespace

extern const LayerType layer_softmax_loss{
    .name = "SoftmaxWithLoss",
    .min_bottoms = 2,
    .max_bottoms = 3,
    .max_tops = 2,
    .create = create_layer<SoftmaxWithLoss>,
    .loss = true,
    .no_label = true,
    .rows_apart = [](const caffe::LayerParameter& param,
                     const RowPath& rows) { return !rows.along(param.softmax_param().axis()); },
    .labels =
        [](const caffe::LayerParameter& param, const Shape& scores) {
          return labels_along(scores, param.softmax_param().axis(), param.loss_param());
        }};

}  // namespace cafetiere
