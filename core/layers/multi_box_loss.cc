// SPDX-License-Identifier: Apache-2.0
// MultiBoxLoss (SSD, Liu et al. 2016): the losses of place and class of prior boxes that are matched with
// objects, and of the background where it looks most like an object. Bottoms: places (N, 4 P), scores (N, P
// C) before the softmax, priors (1, 2, 4 P), objects (1, 1, G, 8): image, label, instance, x1, y1, x2, y2,
// difficult, an image of -1 for none; top: the loss (a scalar). Forms that the published nets do not use are
// refused.
#include <fmt/format.h>

#include <cmath>

#include "core/base/elementary.h"
#include "core/layers/loss_steps.h"
#include "core/layers/match_boxes.h"
#include "core/layers/smooth_l1.h"

namespace cafetiere {
namespace {

using MultiBoxParam = caffe::MultiBoxLossParameter;

/// -log softmax(scores)[c].
double softmax_loss(const float* scores, int64_t classes, int64_t c) {
  const float top = *std::max_element(scores, scores + classes);
  double sum = 0;
  for (int64_t i = 0; i < classes; ++i) sum += elementary::exp(double(scores[i]) - double(top));
  return elementary::log(sum) - (double(scores[c]) - double(top));
}

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
    const int64_t count = priors[2] / 4, classes = multi().num_classes();
    if (places.count(1) != 4 * count || scores.axes() < 1 || scores[0] != places[0] ||
        scores.count(1) != count * classes) {
      return invalid_argument(fmt::format(
          "{} priors and {} classes need places (N, {}) and scores (N, {}), not {} and {}", count,
          classes, 4 * count, count * classes, places.str(), scores.str()));
    }
    if (objects.axes() < 1 || objects[objects.axes() - 1] != kObjectValues) {
      return invalid_argument("needs objects (1, 1, G, 8) as the fourth bottom, not " +
                              objects.str());
    }
    s.tops[0] = {};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const Sizes g = sizes(plan);
    const TensorId kind = plan.new_tensor("kind", {g.images, g.priors});
    const TensorId target = plan.new_tensor("target", {g.images, g.priors, 4});
    const TensorId divisor = plan.new_tensor("divisor", {1});
    match(plan, g, kind, target);
    count_matches(plan, g, kind, divisor);
    LossNormalizer rule(g.images * g.priors);
    rule.mode = caffe::LossParameter::NONE;  // the divisor is in the terms
    const TensorId one =
        emit_loss(plan, rule, {plan.bottoms[0], kind, target, plan.bottoms[1], divisor},
                  [g, p = multi()](const auto& in, int64_t i) {
                    const float kind = in[1][i];
                    if (kind < 0) return 0.;
                    const auto label = int64_t(kind);
                    double sum = softmax_loss(in[3] + i * g.classes, g.classes, label);
                    if (label != g.background) {
                      for (int64_t c = 4 * i; c < 4 * i + 4; ++c) {
                        sum += p.loc_weight() * place_loss(p, in[0][c] - in[2][c]);
                      }
                    }
                    return sum / in[4][0];
                  });
    plan.saved = {kind, target, divisor, one};
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    const Sizes g = sizes(plan);
    const LossNormalizer rule(g.images * g.priors);
    const TensorId kind = plan.saved[0], target = plan.saved[1], divisor = plan.saved[2];
    if (plan.propagate_down[0]) {
      emit_loss_gradient(plan, {.outer = g.images * g.priors, .classes = 4, .inner = 1}, rule,
                         {plan.bottoms[0], kind, target}, divisor, plan.top_diffs[0],
                         plan.new_bottom_diff(0), [g, p = multi()](const auto& in, int64_t i) {
                           const bool object = in[1][i] >= 0 && int64_t(in[1][i]) != g.background;
                           const float weight = object ? p.loc_weight() : 0;
                           return [=, x = in[0], t = in[2]](int64_t, int64_t e) {
                             return weight == 0 ? 0 : weight * place_slope(p, x[e] - t[e]);
                           };
                         });
    }
    if (!plan.propagate_down[1]) return {};
    emit_loss_gradient(plan, {.outer = g.images * g.priors, .classes = g.classes, .inner = 1}, rule,
                       {plan.bottoms[1], kind}, divisor, plan.top_diffs[0], plan.new_bottom_diff(1),
                       [g](const auto& in, int64_t i) {
                         const float* scores = in[0] + i * g.classes;
                         const float kind = in[1][i];
                         return [=](int64_t c, int64_t) {
                           if (kind < 0) return 0.F;
                           const double share =
                               elementary::exp(-softmax_loss(scores, g.classes, c));
                           return float(share) - (c == int64_t(kind) ? 1.F : 0.F);
                         };
                       });
    return {};
  }

 private:
  struct Sizes {
    int64_t images, priors, classes, background, objects;
  };

  const MultiBoxParam& multi() const { return param().multibox_loss_param(); }

  Status check() const {
    const MultiBoxParam& p = multi();
    if (p.num_classes() < 2) return invalid_argument("give num_classes, the background included");
    const std::pair<bool, const char*> kMissing[] = {
        {p.conf_loss_type() != MultiBoxParam::SOFTMAX, "conf_loss_type: LOGISTIC"},
        {!p.share_location(), "share_location: false"},
        {!p.use_prior_for_matching(), "use_prior_for_matching: false"},
        {p.mining_type() == MultiBoxParam::HARD_EXAMPLE, "mining_type: HARD_EXAMPLE"},
        {p.has_nms_param(), "nms_param"},
        {p.map_object_to_agnostic(), "map_object_to_agnostic"},
        {p.bp_inside(), "bp_inside"},
        {p.ignore_difficult_gt(), "ignore_difficult_gt"},
    };
    for (const auto& [given, name] : kMissing) {
      if (given) return invalid_argument(fmt::format("{} is not available; remove it", name));
    }
    return {};
  }

  Sizes sizes(const LoweringContext& plan) const {
    const MultiBoxParam& p = multi();
    return {plan.bottom_shape(0)[0], plan.bottom_shape(2)[2] / 4, p.num_classes(),
            p.background_label_id(), plan.bottom_shape(3).count() / kObjectValues};
  }

  static double place_loss(const MultiBoxParam& p, float d) {
    return p.loc_loss_type() == MultiBoxParam::L2 ? 0.5 * double(d) * double(d)
                                                  : SmoothL1().value(d);
  }
  static float place_slope(const MultiBoxParam& p, float d) {
    return p.loc_loss_type() == MultiBoxParam::L2 ? d : SmoothL1().slope(d);
  }

  /// Of each prior the class that it should have, -1 if it does not count, and what its place should be.
  void match(LoweringContext& plan, const Sizes& g, TensorId kind, TensorId target) const {
    row_major_step(plan.program, plan.step("match"), "images",
                   {plan.bottoms[1], plan.bottoms[2], plan.bottoms[3]}, {kind, target},
                   [g, p = multi()](const RowMajor& at) {
                     return Kernel{int(g.images), [=, in = at.in, out = at.out](int image) {
                                     const Priors priors{in[1], g.priors};
                                     const std::vector<Object> objects =
                                         objects_of(in[2], g, p, image);
                                     const Matches matches = match_boxes(priors, objects, p);
                                     float* const kinds = out[0] + image * g.priors;
                                     float* const targets = out[1] + image * g.priors * 4;
                                     const float* scores = in[0] + image * g.priors * g.classes;
                                     assign(g, p, priors, objects, matches, scores, kinds, targets);
                                   }};
                   });
  }

  static std::vector<Object> objects_of(const float* rows, const Sizes& g, const MultiBoxParam& p,
                                        int image) {
    std::vector<Object> objects;
    for (int64_t i = 0; i < g.objects; ++i) {
      const float* row = rows + i * kObjectValues;
      if (int64_t(row[0]) != image || row[0] < 0) continue;
      if (!p.use_difficult_gt() && row[7] != 0) continue;
      objects.push_back({index_below(row[1], g.classes), {row[3], row[4], row[5], row[6]}});
    }
    return objects;
  }

  static void assign(const Sizes& g, const MultiBoxParam& p, const Priors& priors,
                     const std::vector<Object>& objects, const Matches& matches,
                     const float* scores, float* kinds, float* targets) {
    const PriorCode code{p.code_type(), p.encode_variance_in_target()};
    std::fill_n(targets, 4 * g.priors, 0.F);
    int64_t matched = 0;
    for (int64_t i = 0; i < g.priors; ++i) {
      const int object = matches.object[size_t(i)];
      kinds[i] = -1;
      if (object >= 0) {
        const Object& o = objects[size_t(object)];
        kinds[i] = float(std::max<int64_t>(o.label, 0));
        code.encode(o.box, priors.box(i), priors.variance(i), targets + 4 * i);
        ++matched;
      } else if (p.mining_type() == MultiBoxParam::NONE) {
        kinds[i] = float(g.background);
      }
    }
    if (p.mining_type() == MultiBoxParam::NONE) return;
    std::vector<int64_t> free;
    std::vector<float> losses;
    for (int64_t i = 0; i < g.priors; ++i) {
      if (matches.object[size_t(i)] != kFree) continue;
      if (!(matches.overlap[size_t(i)] < p.neg_overlap())) continue;
      free.push_back(i);
      losses.push_back(float(softmax_loss(scores + i * g.classes, g.classes, g.background)));
    }
    const auto most = int64_t(double(p.neg_pos_ratio()) * double(matched));
    for (const int i : by_score(losses, most)) kinds[free[size_t(i)]] = float(g.background);
  }

  void count_matches(LoweringContext& plan, const Sizes& g, TensorId kind, TensorId divisor) const {
    const LossNormalizer rule(param().loss_param(), g.images, g.priors);
    serial_step(plan.program, plan.step("count"), {kind}, {divisor},
                [=](const auto& in, const auto& out, const RunContext&) {
                  int64_t matched = 0;
                  for (int64_t i = 0; i < g.images * g.priors; ++i) {
                    matched += in[0][i] >= 0 && int64_t(in[0][i]) != g.background;
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
