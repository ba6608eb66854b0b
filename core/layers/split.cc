// SPDX-License-Identifier: Apache-2.0
// Split: passes its bottom to several consumers; its gradient is the sum of theirs.
#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Split : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    for (Shape& top : s.tops) top = s.bottoms[0];
    return {};
  }
  Status forward(LoweringContext& plan) const override {
    for (TensorId& top : plan.tops) top = plan.bottoms[0];
    return {};
  }
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    TensorId sum = kNoTensor;
    for (TensorId diff : plan.top_diffs) {
      if (diff == kNoTensor) continue;
      if (sum == kNoTensor) {
        sum = diff;
        continue;
      }
      const TensorId next = plan.new_tensor("diff", plan.bottom_shape(0));
      add(plan.program, plan.step("backward"), next, sum, diff);
      sum = next;
    }
    plan.bottom_diffs[0] = sum;
    return {};
  }
};

}  // namespace

extern const LayerType layer_split{.name = "Split",
                                   .max_tops = -1,
                                   .create = create_layer<Split>,
                                   .any_format = true,
                                   .identity = true,
                                   .rows_apart = always_apart};

}  // namespace cafetiere
