// SPDX-License-Identifier: Apache-2.0
// ContrastiveLoss (Hadsell, Chopra & LeCun 2006): 1 / (2 N) times the sum of d^2 over similar pairs
// and of max(margin - d, 0)^2 over dissimilar ones, where d is the distance between a and b. With
// legacy_version, dissimilar pairs use max(margin - d^2, 0). Bottoms: a and b (N, C[, 1, 1]), N
// similarities (nonzero = similar); top: the loss (a scalar).
#include <algorithm>
#include <cmath>

#include "core/layers/loss_steps.h"

namespace cafetiere {
namespace {

class ContrastiveLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape &a = s.bottoms[0], &b = s.bottoms[1], &similar = s.bottoms[2];
    if (a.axes() < 2 || a.count(2) != 1 || a.count() != b.count() || b.axes() < 1 || b[0] != a[0]) {
      return invalid_argument("needs two bottoms (N, C) of one size, not " + a.str() + " and " +
                              b.str());
    }
    if (similar.count() != a[0]) {
      return invalid_argument("needs one similarity for each pair of " + a.str() + ", not " +
                              similar.str());
    }
    s.tops[0] = {};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const Pairs pairs = this->pairs(plan);
    plan.saved = {emit_loss(plan, LossNormalizer(pairs.count),
                            {plan.bottoms[0], plan.bottoms[1], plan.bottoms[2]},
                            [=](const auto& in, int64_t n) {
                              return pairs.loss(pairs.square(in[0], in[1], n), in[2][n]) / 2.;
                            })};
    return {};
  }

  /// The gradient of a is slope * (a - b) * weight / N, that of b its negative.
  Status backward(LoweringContext& plan) const override {
    const Pairs pairs = this->pairs(plan);
    for (size_t i = 0; i < 2; ++i) {
      if (!plan.propagate_down[i]) continue;
      emit_loss_gradient(
          plan, {.outer = pairs.count, .classes = pairs.dim, .inner = 1},
          LossNormalizer(pairs.count), {plan.bottoms[i], plan.bottoms[1 - i], plan.bottoms[2]},
          plan.saved[0], plan.top_diffs[0], plan.new_bottom_diff(i),
          [=](const auto& in, int64_t n) {
            const float slope = pairs.slope(pairs.square(in[0], in[1], n), in[2][n]);
            return [=, a = in[0], b = in[1]](int64_t, int64_t e) { return slope * (a[e] - b[e]); };
          });
    }
    return {};
  }

 private:
  struct Pairs {
    int64_t count, dim;
    float margin;
    bool legacy;

    /// The squared distance of pair n.
    float square(const float* a, const float* b, int64_t n) const {
      double sum = 0;
      for (int64_t c = n * dim; c < (n + 1) * dim; ++c) {
        const double d = double(a[c]) - b[c];
        sum += d * d;
      }
      return float(sum);
    }
    static bool is_similar(float label) { return std::trunc(label) != 0; }
    /// By how much a pair falls short of the margin.
    float lack(float square) const {
      return std::max(0.f, margin - (legacy ? square : std::sqrt(square)));
    }
    float loss(float square, float label) const {
      if (is_similar(label)) return square;
      return legacy ? lack(square) : lack(square) * lack(square);
    }
    /// Half the derivative of the loss with respect to d, divided by d. Caffe's 1e-4 keeps it
    /// finite.
    float slope(float square, float label) const {
      if (is_similar(label)) return 1;
      if (legacy) return lack(square) > 0 ? -1.f : 0.f;
      return -lack(square) / (std::sqrt(square) + 1e-4f);
    }
  };

  Pairs pairs(const LoweringContext& plan) const {
    const caffe::ContrastiveLossParameter& p = param().contrastive_loss_param();
    const Shape& shape = plan.bottom_shape(0);
    return {shape[0], shape[1], p.margin(), p.legacy_version()};
  }
};

}  // namespace

extern const LayerType layer_contrastive_loss{.name = "ContrastiveLoss",
                                              .min_bottoms = 3,
                                              .max_bottoms = 3,
                                              .create = create_layer<ContrastiveLoss>,
                                              .loss = true};

}  // namespace cafetiere
