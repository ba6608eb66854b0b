// ReLU: y = max(x, 0) + negative_slope * min(x, 0), element-wise.
#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class ReLU : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    s.tops[0] = s.bottoms[0];
    return {};
  }

  Status forward(LayerPlan& plan) const override {
    const float slope = param().relu_param().negative_slope();
    const TensorId x = plan.bottoms[0];
    map(
        plan.program, plan.step("forward"), [=](float v) { return v > 0 ? v : slope * v; },
        plan.new_top(0), x);
    return {};
  }

  Status backward(LayerPlan& plan) const override {
    if (!plan.propagate_down[0]) return {};
    const float slope = param().relu_param().negative_slope();
    // The top has the bottom's sign wherever the slope is not negative, and lets the bottom's
    // memory go.
    const TensorId sign = slope >= 0 ? plan.tops[0] : plan.bottoms[0];
    const TensorId diff = plan.top_diffs[0];
    map(
        plan.program, plan.step("backward"),
        [=](float d, float v) { return v > 0 ? d : slope * d; }, plan.new_bottom_diff(0), diff,
        sign);
    return {};
  }
};

}  // namespace

extern const LayerType layer_relu{.name = "ReLU",
                                  .min_bottoms = 1,
                                  .max_bottoms = 1,
                                  .min_tops = 1,
                                  .max_tops = 1,
                                  .create = create_layer<ReLU>};

}  // namespace cafetiere
