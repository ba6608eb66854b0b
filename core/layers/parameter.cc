// SPDX-License-Identifier: Apache-2.0
// Parameter: a learned blob of the given shape, initially 0, exposed as a top.
#include "core/device/row_major.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Parameter : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const auto& dims = param().parameter_param().shape().dim();
    s.tops[0] = Shape(std::vector<int64_t>(dims.begin(), dims.end()));
    for (int64_t dim : dims) {
      if (dim < 0) return invalid_argument("a dimension is negative: " + s.tops[0].str());
    }
    s.params.push_back({s.tops[0], {}});
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    plan.tops[0] = plan.params[0];
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    const Gradient gradient = plan.param_diffs[0];
    if (gradient.tensor == kNoTensor) return {};
    const int64_t count = plan.top_shapes[0].count();
    range_step(
        plan.program, plan.step("gradient"), {plan.top_diffs[0]}, {gradient.tensor}, count,
        [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext& run) {
          const bool add = gradient.adds(run);
          for (int64_t i = begin; i < end; ++i) put(out[0] + i, in[0][i], add);
        });
    return {};
  }
};

}  // namespace

extern const LayerType layer_parameter{
    .name = "Parameter", .min_bottoms = 0, .max_bottoms = 0, .create = create_layer<Parameter>};

}  // namespace cafetiere
