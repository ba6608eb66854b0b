// SoftmaxWithLoss: the mean of -log softmax(x)[label]. Bottoms: scores, labels (one a position);
// tops: the loss (a scalar) and, if asked, the probabilities.
#include <cfloat>
#include <cmath>

#include "core/device/ref/ref_device.h"
#include "core/layers/class_scores.h"
#include "core/layers/loss_normalizer.h"

namespace cafetiere {
namespace {

class SoftmaxWithLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_TRY(scores(s.bottoms[0], s.bottoms[1]).status());
    s.tops[0] = {};
    if (s.tops.size() > 1) s.tops[1] = s.bottoms[0];
    return {};
  }

  Status forward(LayerPlan& plan) const override {
    CFT_ASSIGN(const ClassScores s, scores(plan.bottom_shape(0), plan.bottom_shape(1)));
    const LossNormalizer rule(param().loss_param(), s.outer, s.inner);
    const TensorId x = plan.program.reshaped(plan.bottoms[0], s.shape());
    const TensorId prob = plan.new_tensor("prob", s.shape());
    plan.device.softmax(plan.program, plan.step("softmax"), x, prob);
    ref_step(plan.program, plan.step("forward"), {prob, plan.bottoms[1]}, {plan.new_top(0)},
             [=](const auto& in, const auto& out, const RunContext&) {
               double sum = 0;
               const float divisor = rule.for_each(in[1], [&](int64_t i) {
                 sum -= std::log(std::max(in[0][s.at(i, s.class_of(in[1][i]))], FLT_MIN));
               });
               out[0][0] = float(sum / divisor);
             });
    plan.saved = {prob};
    if (plan.tops.size() > 1) plan.tops[1] = plan.program.reshaped(prob, plan.top_shapes[1]);
    return {};
  }

  /// (softmax(x) - onehot(label)) * weight / divisor; zero where the label is ignored.
  Status backward(LayerPlan& plan) const override {
    if (!plan.propagate_down[0] || plan.top_diffs[0] == kNoTensor) return {};
    CFT_ASSIGN(const ClassScores s, scores(plan.bottom_shape(0), plan.bottom_shape(1)));
    const LossNormalizer rule(param().loss_param(), s.outer, s.inner);
    const TensorId down = plan.new_tensor("diff", s.shape());
    ref_step(plan.program, plan.step("backward"),
             {plan.saved[0], plan.bottoms[1], plan.top_diffs[0]}, {down},
             [=](const auto& in, const auto& out, const RunContext&) {
               std::fill_n(out[0], s.count(), 0.f);
               const float divisor = rule.for_each(in[1], [&](int64_t i) {
                 const int64_t label = s.class_of(in[1][i]);
                 for (int64_t c = 0; c < s.classes; ++c) {
                   out[0][s.at(i, c)] = in[0][s.at(i, c)] - (c == label ? 1.f : 0.f);
                 }
               });
               const float scale = in[2][0] / divisor;
               for (int64_t i = 0; i < s.count(); ++i) out[0][i] *= scale;
             });
    plan.bottom_diffs[0] = plan.program.reshaped(down, plan.bottom_shape(0));
    return {};
  }

 private:
  Result<ClassScores> scores(const Shape& bottom, const Shape& labels) const {
    return ClassScores::along(bottom, param().softmax_param().axis(), labels);
  }
};

}  // namespace

extern const LayerType layer_softmax_loss{.name = "SoftmaxWithLoss",
                                          .min_bottoms = 2,
                                          .max_bottoms = 2,
                                          .min_tops = 1,
                                          .max_tops = 2,
                                          .create = create_layer<SoftmaxWithLoss>,
                                          .loss = true,
                                          .no_label = true};

}  // namespace cafetiere
