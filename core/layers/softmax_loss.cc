// SPDX-License-Identifier: Apache-2.0
// SoftmaxWithLoss: the mean of -log softmax(x)[label]. Bottoms: scores, labels (one per position)
// and, optionally, weights (one per image or per position); tops: the loss (a scalar) and,
// optionally, the probabilities. With weight_by_label_freqs (SegNet), the loss of a position is
// weighted by its label's class_weighting. The divisor ignores all weights.
#include "core/layers/softmax_loss.h"

#include <cfloat>
#include <vector>

#include "core/device/vector_math.h"

namespace cafetiere {
namespace {

/// A weight per class; empty: all are 1.
struct ClassWeights {
  std::vector<float> values;

  explicit ClassWeights(const caffe::LossParameter& p) {
    if (p.weight_by_label_freqs()) {
      values.assign(p.class_weighting().begin(), p.class_weighting().end());
    }
  }
  float of(int64_t label) const { return values.empty() ? 1.F : values[size_t(label)]; }
};

class SoftmaxWithLoss : public SoftmaxLoss {
 public:
  using SoftmaxLoss::SoftmaxLoss;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const ClassScores given, scores(s.bottoms[0], s.bottoms[1]));
    const caffe::LossParameter& p = param().loss_param();
    if (p.weight_by_label_freqs() && p.class_weighting_size() != given.classes) {
      return invalid_argument(fmt::format("class_weighting is given {} times for {} classes",
                                          p.class_weighting_size(), given.classes));
    }
    CFT_TRY(LossWeights::check(s.bottoms, 2, given.outer, given.outer * given.inner));
    shape_tops(s);
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const ClassScores s, scores(plan.bottom_shape(0), plan.bottom_shape(1)));
    forward_loss(
        plan, s, kNoTensor,
        [=, classes = class_weights()](const auto& in, int64_t i) {
          const int64_t label = s.class_of(in[1][i]);
          return classes.of(label) * -vec::log(std::max(in[0][s.at(i, label)], FLT_MIN));
        },
        row_weights(plan, s));
    return {};
  }

  /// (softmax(x) - onehot(label)) * weight / divisor; zero for ignored labels.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0] || plan.top_diffs[0] == kNoTensor) return {};
    CFT_ASSIGN(const ClassScores s, scores(plan.bottom_shape(0), plan.bottom_shape(1)));
    backward_loss(
        plan, s,
        [=, classes = class_weights()](const auto& in, int64_t i) {
          const int64_t label = s.class_of(in[1][i]);
          return [prob = in[0], label, weight = classes.of(label)](int64_t c, int64_t e) {
            return weight * (prob[e] - (c == label ? 1.f : 0.f));
          };
        },
        row_weights(plan, s));
    return {};
  }

 private:
  ClassWeights class_weights() const { return ClassWeights(param().loss_param()); }
  static LossWeights row_weights(const LoweringContext& plan, const ClassScores& s) {
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
