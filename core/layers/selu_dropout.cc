// SPDX-License-Identifier: Apache-2.0
// SeLuDropout: dropout that preserves mean and variance after a SeLu (Klambauer et al. 2017). In
// training, dropped elements become alpha, then all elements are scaled and shifted; otherwise the
// identity.
#include <cmath>

#include "core/device/map.h"
#include "core/graph/layer.h"
#include "core/layers/drop_mask.h"

namespace cafetiere {
namespace {

class SeLuDropout : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const float ratio = param().selu_dropout_param().dropout_ratio();
    if (!(ratio >= 0 && ratio < 1)) return invalid_argument("dropout_ratio must be in [0, 1)");
    s.tops[0] = s.bottoms[0];
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    if (!plan.train) {
      plan.tops[0] = plan.bottoms[0];
      return {};
    }
    const Affine f = affine();
    const TensorId x = plan.bottoms[0];
    apply(plan, plan.step("forward"), plan.new_top(0), x, f.scale, f.shift,
          f.scale * f.alpha + f.shift);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    if (!plan.train) {
      plan.bottom_diffs[0] = plan.top_diffs[0];
      return {};
    }
    const TensorId dy = plan.top_diffs[0];
    apply(plan, plan.step("backward"), plan.new_bottom_diff(0), dy, affine().scale, 0, 0);
    return {};
  }

 private:
  struct Affine {
    float alpha, scale, shift;
  };
  Affine affine() const {
    const caffe::SeLuDropoutParameter& p = param().selu_dropout_param();
    const double kept = 1 - double(p.dropout_ratio()), alpha = p.alpha();
    const double scale = 1 / std::sqrt(kept * (1 + alpha * alpha * (1 - kept)));
    return {p.alpha(), float(scale), float(-scale * (1 - kept) * alpha)};
  }

  /// scale x + shift for kept elements, `dropped` for the others.
  void apply(LoweringContext& plan, std::string name, TensorId out, TensorId in, float scale,
             float shift, float dropped) const {
    map_indexed(
        plan.program, std::move(name),
        [=, ratio = param().selu_dropout_param().dropout_ratio(),
         purpose = "dropout " + plan.name](const RunContext& run) {
          return [=, mask = DropMask(run, purpose, ratio)](float x, int64_t sample,
                                                           int64_t element) mutable {
            return mask.keeps(sample, element) ? scale * x + shift : dropped;
          };
        },
        out, in);
  }
};

}  // namespace

extern const LayerType layer_selu_dropout{
    .name = "SeLuDropout", .create = create_layer<SeLuDropout>, .rows_apart = always_apart};

}  // namespace cafetiere
