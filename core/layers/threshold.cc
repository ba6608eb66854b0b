// SPDX-License-Identifier: Apache-2.0
// Threshold: y = 1 where x > threshold, else 0, element-wise. No gradient.
#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Threshold : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    s.tops[0] = s.bottoms[0];
    return {};
  }
  Status forward(LoweringContext& plan) const override {
    const float threshold = param().threshold_param().threshold();
    const TensorId x = plan.bottoms[0];
    map(
        plan.program, plan.step("forward"), [=](float v) { return v > threshold ? 1.F : 0.F; },
        plan.new_top(0), x);
    return {};
  }
  Status backward(LoweringContext& plan) const override {
    return plan.propagate_down[0] ? Layer::backward(plan) : Status();
  }
};

}  // namespace

extern const LayerType layer_threshold{
    .name = "Threshold", .create = create_layer<Threshold>, .rows_apart = always_apart};

}  // namespace cafetiere
