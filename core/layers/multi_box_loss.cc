// SPDX-License-Identifier: Apache-2.0
// MultiBoxLoss (SSD, Liu et al. 2016): the localisation and confidence losses of the prior boxes
// matched with objects, plus the confidence loss of mined negatives. Bottoms: locations (N, 4 P L),
// where L is 1 or, without share_location, the number of classes; scores (N, P C) before the
// softmax or sigmoid; priors (1, 2, 4 P); objects (1, 1, G, 8): image (-1 for an unused row),
// label, instance, x1, y1, x2, y2, difficult. Top: the loss (a scalar).
#include <fmt/format.h>

#include "core/layers/loss_steps.h"
#include "core/layers/multi_box.h"

namespace cafetiere {
namespace {

class MultiBoxLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_TRY(check());
    const Shape &places = s.bottoms[0], &scores = s.bottoms[1], &priors = s.bottoms[2],
                &objects = s.bottoms[3];
    if (priors.axes() < 3 || priors[1] != 2 || priors[2] % 4 != 0 || places.axes() < 1) {
      return invalid_argument("needs priors (1, 2, 4 P) as the third bottom, not " + priors.str());
    }
    const int64_t count = priors[2] / 4, classes = fields().num_classes();
    const int64_t numbers = 4 * count * (fields().share_location() ? 1 : classes);
    if (places.count(1) != numbers || scores.axes() < 1 || scores[0] != places[0] ||
        scores.count(1) != count * classes) {
      return invalid_argument(fmt::format(
          "{} priors and {} classes need places (N, {}) and scores (N, {}), not {} and {}", count,
          classes, numbers, count * classes, places.str(), scores.str()));
    }
    if (objects.axes() < 1 || objects[objects.axes() - 1] != kObjectValues) {
      return invalid_argument("needs objects (1, 1, G, 8) as the fourth bottom, not " +
                              objects.str());
    }
    s.tops[0] = {};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const MultiBox g = boxes(plan);
    const TensorId kind = plan.new_tensor("kind", {g.images, g.priors});
    const TensorId target = plan.new_tensor("target", {g.images, g.priors, 4});
    const TensorId divisor = plan.new_tensor("divisor", {1});
    assign(plan, g, kind, target);
    count_matches(plan, g, kind, divisor);
    LossNormalizer rule(g.images * g.priors);
    rule.mode = caffe::LossParameter::NONE;  // the terms are already divided
    const TensorId one = emit_loss(
        plan, rule, {plan.bottoms[0], kind, target, plan.bottoms[1], divisor, plan.bottoms[2]},
        [g](const auto& in, int64_t i) {
          const float kind = in[1][i];
          if (kind < 0) return 0.;
          const auto label = int64_t(kind);
          double sum = g.class_loss(in[3] + i * g.classes(), label);
          if (label != g.background()) {
            const Box prior = Priors{in[5], g.priors}.box(i % g.priors);
            const float* place = in[0] + g.place(i, label);
            for (int64_t c = 0; c < 4; ++c) {
              if (!g.counts(prior, c)) continue;
              sum += g.p.loc_weight() * g.place_loss(place[c] - in[2][4 * i + c]);
            }
          }
          return sum / in[4][0];
        });
    plan.saved = {kind, target, divisor, one};
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    const MultiBox g = boxes(plan);
    const LossNormalizer rule(g.images * g.priors);
    const TensorId kind = plan.saved[0], target = plan.saved[1], divisor = plan.saved[2];
    if (plan.propagate_down[0]) {
      emit_loss_gradient(plan, {.outer = g.images * g.priors, .classes = 4 * g.kinds(), .inner = 1},
                         rule, {plan.bottoms[0], kind, target, plan.bottoms[2]}, divisor,
                         plan.top_diffs[0], plan.new_bottom_diff(0),
                         [g](const auto& in, int64_t i) {
                           const float kind = in[1][i];
                           const bool object = kind >= 0 && int64_t(kind) != g.background();
                           const int64_t first = object ? g.place(i, int64_t(kind)) : 0;
                           const Box prior = Priors{in[3], g.priors}.box(i % g.priors);
                           return [=, &g, x = in[0], t = in[2] + 4 * i](int64_t, int64_t e) {
                             const int64_t c = e - first;
                             if (!object || c < 0 || c >= 4 || !g.counts(prior, c)) return 0.F;
                             return g.p.loc_weight() * g.place_slope(x[e] - t[c]);
                           };
                         });
    }
    if (!plan.propagate_down[1]) return {};
    emit_loss_gradient(plan, {.outer = g.images * g.priors, .classes = g.classes(), .inner = 1},
                       rule, {plan.bottoms[1], kind}, divisor, plan.top_diffs[0],
                       plan.new_bottom_diff(1), [g](const auto& in, int64_t i) {
                         const float* scores = in[0] + i * g.classes();
                         const float kind = in[1][i];
                         return [=, &g](int64_t c, int64_t) {
                           return kind < 0 ? 0.F : g.class_slope(scores, c, int64_t(kind));
                         };
                       });
    return {};
  }

 private:
  const caffe::MultiBoxLossParameter& fields() const { return param().multibox_loss_param(); }

  Status check() const {
    const caffe::MultiBoxLossParameter& p = fields();
    if (p.num_classes() < 2) return invalid_argument("give num_classes, the background included");
    if (p.ignore_difficult_gt()) {
      return invalid_argument("ignore_difficult_gt is not available; use_difficult_gt: false is");
    }
    const bool decodes =
        !p.use_prior_for_matching() || (p.has_nms_param() && !p.use_prior_for_nms());
    if (decodes && !p.share_location()) {
      return invalid_argument(
          "share_location: false goes with use_prior_for_matching, and with nms_param only beside "
          "use_prior_for_nms: a prior has no one place");
    }
    if (p.mining_type() == MultiBox::Param::HARD_EXAMPLE && p.sample_size() < 1) {
      return invalid_argument("mining_type: HARD_EXAMPLE needs a sample_size above 0");
    }
    if (p.map_object_to_agnostic() && p.background_label_id() + 1 >= p.num_classes()) {
      return invalid_argument("map_object_to_agnostic needs a class behind background_label_id");
    }
    return {};
  }

  MultiBox boxes(const LoweringContext& plan) const {
    return {fields(), plan.bottom_shape(0)[0], plan.bottom_shape(2)[2] / 4,
            plan.bottom_shape(3).count() / kObjectValues};
  }

  void assign(LoweringContext& plan, const MultiBox& g, TensorId kind, TensorId target) const {
    row_major_step(
        plan.program, plan.step("match"), "images", plan.bottoms, {kind, target},
        [g](const RowMajor& at) {
          return Kernel{int(g.images), [=, in = at.in, out = at.out](int image) {
                          g.assign(image, in[1] + image * g.priors * g.classes(),
                                   in[0] + g.place(image * g.priors, 0), Priors{in[2], g.priors},
                                   in[3], out[0] + image * g.priors, out[1] + image * g.priors * 4);
                        }};
        });
  }

  void count_matches(LoweringContext& plan, const MultiBox& g, TensorId kind,
                     TensorId divisor) const {
    const LossNormalizer rule(param().loss_param(), g.images, g.priors);
    serial_step(plan.program, plan.step("count"), {kind}, {divisor},
                [g, rule](const auto& in, const auto& out, const RunContext&) {
                  int64_t matched = 0;
                  for (int64_t i = 0; i < g.images * g.priors; ++i) {
                    matched += in[0][i] >= 0 && int64_t(in[0][i]) != g.background();
                  }
                  out[0][0] = rule.divisor(matched);
                });
  }
};

}  // namespace

extern const LayerType layer_multi_box_loss{.name = "MultiBoxLoss",
                                            .min_bottoms = 4,
                                            .max_bottoms = 4,
                                            .create = create_layer<MultiBoxLoss>,
                                            .loss = true};

}  // namespace cafetiere
