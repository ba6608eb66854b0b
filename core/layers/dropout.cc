// SPDX-License-Identifier: Apache-2.0
// Dropout: in training, keeps an element with probability 1 - ratio and scales it by 1 / (1 -
// ratio); otherwise the identity (Srivastava et al. 2014, inverted form). Variants of forks:
// without scale_train, testing scales by 1 - ratio instead (Fast R-CNN); with sample_weights_test,
// testing drops elements too (Bayesian SegNet).
#include <bit>

#include "core/device/map.h"
#include "core/graph/layer.h"
#include "core/layers/drop_mask.h"

namespace cafetiere {
namespace {

class Dropout : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    if (!(ratio() >= 0 && ratio() < 1)) return invalid_argument("dropout_ratio must be in [0, 1)");
    s.tops[0] = s.bottoms[0];
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    if (is_identity(plan)) {
      plan.tops[0] = plan.bottoms[0];
      return {};
    }
    const TensorId x = plan.bottoms[0];
    apply(plan, plan.step("forward"), plan.new_top(0), x);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    if (is_identity(plan)) {
      plan.bottom_diffs[0] = plan.top_diffs[0];
      return {};
    }
    const TensorId dy = plan.top_diffs[0];
    apply(plan, plan.step("backward"), plan.new_bottom_diff(0), dy);
    return {};
  }

 private:
  float ratio() const { return param().dropout_param().dropout_ratio(); }
  bool scales_in_training() const { return param().dropout_param().scale_train(); }
  bool drops(const LoweringContext& plan) const {
    return plan.train || param().dropout_param().sample_weights_test();
  }
  bool is_identity(const LoweringContext& plan) const {
    return !drops(plan) && scales_in_training();
  }

  /// Used in both directions: applies the mask or, in testing, what replaces it.
  void apply(LoweringContext& plan, std::string name, TensorId out, TensorId in) const {
    if (!drops(plan)) {
      map(
          plan.program, std::move(name), [share = 1 - ratio()](float x) { return x * share; }, out,
          in);
      return;
    }
    const float scale = scales_in_training() ? 1 / (1 - ratio()) : 1;
    map_indexed(
        plan.program, std::move(name),
        [=, ratio = ratio(), purpose = "dropout " + plan.name](const RunContext& run) {
          return [=, mask = DropMask(run, purpose, ratio)](float x, int64_t sample,
                                                           int64_t element) mutable {
            // Without a branch, of which half would be mispredicted.
            const uint32_t bits = -uint32_t(mask.keeps(sample, element));
            return std::bit_cast<float>(std::bit_cast<uint32_t>(x * scale) & bits);
          };
        },
        out, in);
  }
};

}  // namespace

extern const LayerType layer_dropout{.name = "Dropout",
                                     .create = create_layer<Dropout>,
                                     .any_format = true,
                                     .rows_apart = always_apart};

}  // namespace cafetiere
