// Flatten: makes one axis of the axes [axis, end_axis]; no bytes move.
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Flatten : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape& b = s.bottoms[0];
    CFT_ASSIGN(const int first, b.axis(param().flatten_param().axis()));
    CFT_ASSIGN(const int last, b.axis(param().flatten_param().end_axis()));
    if (last < first) return invalid_argument("end_axis must not come before axis");
    std::vector<int64_t> dims(b.dims().begin(), b.dims().begin() + first);
    dims.push_back(b.count(first, last + 1));
    dims.insert(dims.end(), b.dims().begin() + last + 1, b.dims().end());
    s.tops[0] = Shape(std::move(dims));
    return {};
  }
  Status forward(LayerPlan& plan) const override {
    plan.tops[0] = plan.program.reshaped(plan.bottoms[0], plan.top_shapes[0]);
    return {};
  }
  Status backward(LayerPlan& plan) const override {
    if (!plan.propagate_down[0]) return {};
    plan.bottom_diffs[0] = plan.program.reshaped(plan.top_diffs[0], plan.bottom_shape(0));
    return {};
  }
};

}  // namespace

extern const LayerType layer_flatten{.name = "Flatten",
                                     .min_bottoms = 1,
                                     .max_bottoms = 1,
                                     .min_tops = 1,
                                     .max_tops = 1,
                                     .create = create_layer<Flatten>};

}  // namespace cafetiere
