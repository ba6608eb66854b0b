// SPDX-License-Identifier: Apache-2.0
// QuantileLoss: the loss of quantile regression (Koenker & Bassett 1978), whose minimiser is the
// score with a fraction q of the targets below it. With d = target - score it is q d where d > 0
// and (q - 1) d elsewhere, summed over the quantiles of all targets and divided by the number of
// images. Bottoms: scores (N, targets x quantiles), targets (N, ..) and, optionally, image weights;
// top: the loss (a scalar).
#include "core/layers/loss_steps.h"

namespace cafetiere {
namespace {

class QuantileLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const auto& quantiles = param().quantile_loss_param().quantile();
    const auto is_share = [](float q) { return q > 0 && q < 1; };
    if (quantiles.empty() || !std::ranges::all_of(quantiles, is_share)) {
      return invalid_argument("quantile_loss_param needs quantiles, each between 0 and 1");
    }
    const Shape &x = s.bottoms[0], &t = s.bottoms[1];
    if (x.axes() == 0 || t.axes() == 0 || x[0] != t[0] ||
        x.count() != t.count() * quantiles.size()) {
      return invalid_argument(fmt::format("needs {} scores for each target: {} and {}",
                                          quantiles.size(), x.str(), t.str()));
    }
    s.tops[0] = {};
    return LossWeights::check(s.bottoms, 2, x[0], x[0]);
  }

  Status forward(LoweringContext& plan) const override {
    const ClassScores rows = this->rows(plan);
    plan.saved = {emit_loss(
        plan, LossNormalizer(rows.outer), {plan.bottoms[0], plan.bottoms[1]},
        [rows, q = quantiles()](const auto& in, int64_t n) {
          const int64_t count = int64_t(q.size());
          double sum = 0;
          for (int64_t i = rows.at(n, 0); i < rows.at(n + 1, 0); ++i) {
            const double d = double(in[1][i / count]) - in[0][i];
            const double share = q[size_t(i % count)];
            sum += d > 0 ? share * d : (share - 1) * d;
          }
          return sum;
        },
        weights(plan))};
    return {};
  }

  /// -q where the score is below its target, 1 - q where it is above, 0 where they are equal.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    emit_loss_gradient(
        plan, rows(plan), LossNormalizer(rows(plan).outer), {plan.bottoms[0], plan.bottoms[1]},
        plan.saved[0], plan.top_diffs[0], plan.new_bottom_diff(0),
        [q = quantiles()](const auto& in, int64_t) {
          return [&q, x = in[0], t = in[1]](int64_t, int64_t e) {
            const int64_t count = int64_t(q.size());
            const float share = q[size_t(e % count)], d = t[e / count] - x[e];
            return d > 0 ? -share : d < 0 ? 1 - share : 0.f;
          };
        },
        weights(plan));
    return {};
  }

 private:
  std::vector<float> quantiles() const {
    const auto& given = param().quantile_loss_param().quantile();
    return {given.begin(), given.end()};
  }
  static ClassScores rows(const LoweringContext& plan) {
    const Shape& x = plan.bottom_shape(0);
    return {.outer = x[0], .classes = x.count(1), .inner = 1};
  }
  static LossWeights weights(const LoweringContext& plan) {
    return LossWeights::of(plan, 2, plan.bottom_shape(0)[0]);
  }
};

}  // namespace

extern const LayerType layer_quantile_loss{.name = "QuantileLoss",
                                           .min_bottoms = 2,
                                           .max_bottoms = 3,
                                           .create = create_layer<QuantileLoss>,
                                           .loss = true,
                                           .no_label = true};

}  // namespace cafetiere
