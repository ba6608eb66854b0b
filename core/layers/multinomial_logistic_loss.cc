// MultinomialLogisticLoss: the mean of -log p[label]. Bottoms: probabilities (N, classes..), N
// labels; top: the loss (a scalar). SoftmaxWithLoss does it from scores, and more stably.
#include <cmath>

#include "core/device/ref/ref_device.h"
#include "core/layers/class_scores.h"

namespace cafetiere {
namespace {

constexpr float kLeast = 1e-20f;  ///< what a probability counts at least

class MultinomialLogisticLoss : public Layer {
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
             {plan.new_top(0)}, [=](const auto& in, const auto& out, const RunContext&) {
               double sum = 0;
               for (int64_t i = 0; i < s.outer; ++i) {
                 sum -= std::log(std::max(in[0][s.at(i, s.class_of(in[1][i]))], kLeast));
               }
               out[0][0] = float(sum / double(s.outer));
             });
    return {};
  }

  /// -weight / (N p) at the label, zero elsewhere.
  Status backward(LayerPlan& plan) const override {
    if (!plan.propagate_down[0]) return {};
    CFT_ASSIGN(const ClassScores s,
               ClassScores::of_rows(plan.bottom_shape(0), plan.bottom_shape(1)));
    ref_step(plan.program, plan.step("backward"),
             {plan.bottoms[0], plan.bottoms[1], plan.top_diffs[0]}, {plan.new_bottom_diff(0)},
             [=](const auto& in, const auto& out, const RunContext&) {
               const float scale = -in[2][0] / float(s.outer);
               std::fill_n(out[0], s.count(), 0.f);
               for (int64_t i = 0; i < s.outer; ++i) {
                 const int64_t at = s.at(i, s.class_of(in[1][i]));
                 out[0][at] = scale / std::max(in[0][at], kLeast);
               }
             });
    return {};
  }
};

}  // namespace

extern const LayerType layer_multinomial_logistic_loss{
    .name = "MultinomialLogisticLoss",
    .min_bottoms = 2,
    .max_bottoms = 2,
    .min_tops = 1,
    .max_tops = 1,
    .create = create_layer<MultinomialLogisticLoss>,
    .loss = true,
    .no_label = true};

}  // namespace cafetiere
