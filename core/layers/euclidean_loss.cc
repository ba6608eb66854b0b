// SPDX-License-Identifier: Apache-2.0
// EuclideanLoss: sum (a - b)^2 / (2 N). Two bottoms of one size; the gradient reaches both.
#include "core/layers/loss_steps.h"

namespace cafetiere {
namespace {

class EuclideanLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape &a = s.bottoms[0], &b = s.bottoms[1];
    if (a.axes() == 0 || b.axes() == 0 || a[0] != b[0] || a.count() != b.count()) {
      return invalid_argument("the bottoms must have one batch size and element count: " + a.str() +
                              " and " + b.str());
    }
    s.tops[0] = {};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const ClassScores rows = this->rows(plan);
    plan.saved = {emit_loss(plan, LossNormalizer(rows.outer), {plan.bottoms[0], plan.bottoms[1]},
                            [rows](const auto& in, int64_t n) {
                              double sum = 0;
                              for (int64_t i = rows.at(n, 0); i < rows.at(n + 1, 0); ++i) {
                                const double d = double(in[0][i]) - in[1][i];
                                sum += d * d;
                              }
                              return sum / 2;
                            })};
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    const ClassScores rows = this->rows(plan);
    for (size_t i = 0; i < 2; ++i) {
      if (!plan.propagate_down[i]) continue;
      emit_loss_gradient(
          plan, rows, LossNormalizer(rows.outer), {plan.bottoms[i], plan.bottoms[1 - i]},
          plan.saved[0], plan.top_diffs[0], plan.new_bottom_diff(i), [](const auto& in, int64_t) {
            return [a = in[0], b = in[1]](int64_t, int64_t e) { return a[e] - b[e]; };
          });
    }
    return {};
  }

 private:
  /// A row for each image.
  static ClassScores rows(const LoweringContext& plan) {
    const Shape& a = plan.bottom_shape(0);
    return {.outer = a[0], .classes = a.count(1), .inner = 1};
  }
};

}  // namespace

extern const LayerType layer_euclidean_loss{.name = "EuclideanLoss",
                                            .min_bottoms = 2,
                                            .max_bottoms = 2,
                                            .create = create_layer<EuclideanLoss>,
                                            .loss = true};

}  // namespace cafetiere
