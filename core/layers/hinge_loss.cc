// HingeLoss: one against all, the mean over images of sum max(0, 1 - t s)^p, where t is 1 for the
// label's class and -1 for the others, and p is 1 or 2. Bottoms: scores (N, classes..), N labels;
// top: the loss (a scalar).
#include "core/device/ref/ref_device.h"
#include "core/layers/class_scores.h"

namespace cafetiere {
namespace {

class HingeLoss : public Layer {
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
             [=, squared = squared()](const auto& in, const auto& out, const RunContext&) {
               double sum = 0;
               for_each_margin(s, in[0], in[1], [&](int64_t, float, float margin) {
                 sum += squared ? double(margin) * margin : margin;
               });
               out[0][0] = float(sum / double(s.outer));
             });
    return {};
  }

  Status backward(LayerPlan& plan) const override {
    if (!plan.propagate_down[0]) return {};
    CFT_ASSIGN(const ClassScores s,
               ClassScores::of_rows(plan.bottom_shape(0), plan.bottom_shape(1)));
    ref_step(plan.program, plan.step("backward"),
             {plan.bottoms[0], plan.bottoms[1], plan.top_diffs[0]}, {plan.new_bottom_diff(0)},
             [=, squared = squared()](const auto& in, const auto& out, const RunContext&) {
               const float scale = in[2][0] / float(s.outer);
               for_each_margin(s, in[0], in[1], [&](int64_t i, float sign, float margin) {
                 const float slope = squared ? 2 * margin : margin > 0 ? 1.f : 0.f;
                 out[0][i] = -sign * slope * scale;
               });
             });
    return {};
  }

 private:
  bool squared() const {
    return param().hinge_loss_param().norm() == caffe::HingeLossParameter::L2;
  }

  /// Calls f(element, t, max(0, 1 - t s)) for all scores.
  template <class F>
  static void for_each_margin(const ClassScores& s, const float* scores, const float* labels,
                              const F& f) {
    for (int64_t n = 0; n < s.outer; ++n) {
      const int64_t label = s.class_of(labels[n]);
      for (int64_t c = 0; c < s.classes; ++c) {
        const float sign = c == label ? 1.f : -1.f;
        f(s.at(n, c), sign, std::max(0.f, 1 - sign * scores[s.at(n, c)]));
      }
    }
  }
};

}  // namespace

extern const LayerType layer_hinge_loss{.name = "HingeLoss",
                                        .min_bottoms = 2,
                                        .max_bottoms = 2,
                                        .min_tops = 1,
                                        .max_tops = 1,
                                        .create = create_layer<HingeLoss>,
                                        .loss = true,
                                        .no_label = true};

}  // namespace cafetiere
