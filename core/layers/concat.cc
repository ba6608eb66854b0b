// SPDX-License-Identifier: Apache-2.0
// Concat: concatenates its bottoms along one axis; all other axes must match.
#include <fmt/format.h>

#include "core/layers/parts.h"

namespace cafetiere {
namespace {

class Concat : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const int axis, this->axis(s.bottoms[0]));
    s.tops[0] = s.bottoms[0];
    for (size_t i = 1; i < s.bottoms.size(); ++i) {
      Shape same = s.bottoms[i];
      if (same.axes() == s.tops[0].axes()) same[axis] = s.tops[0][axis];
      if (!(same == s.tops[0])) {
        return invalid_argument(fmt::format("bottoms may differ in axis {} alone: {} and {}", axis,
                                            s.bottoms[0].str(), s.bottoms[i].str()));
      }
      s.tops[0][axis] += s.bottoms[i][axis];
    }
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    if (plan.bottoms.size() == 1) {
      plan.tops[0] = plan.bottoms[0];
      return {};
    }
    CFT_ASSIGN(const Parts parts, this->parts(plan, plan.bottoms[0]));
    parts.join(plan.program, plan.step("forward"), plan.bottoms, plan.new_top(0));
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (plan.bottoms.size() == 1) {
      plan.bottom_diffs[0] = plan.top_diffs[0];
      return {};
    }
    CFT_ASSIGN(const Parts parts, this->parts(plan, plan.top_diffs[0]));
    for (size_t i = 0; i < plan.bottoms.size(); ++i) {
      if (!plan.propagate_down[i]) continue;
      parts.cut(plan.program, plan.step("backward"), plan.top_diffs[0], i, plan.new_bottom_diff(i));
    }
    return {};
  }

 private:
  Result<int> axis(const Shape& bottom) const {
    const caffe::ConcatParameter& p = param().concat_param();
    return parts_axis(bottom, p.has_axis(), p.axis(), p.has_concat_dim(), p.concat_dim());
  }
  Result<Parts> parts(const LoweringContext& plan, TensorId like) const {
    CFT_ASSIGN(const int axis, this->axis(plan.bottom_shape(0)));
    std::vector<Shape> shapes;
    for (size_t i = 0; i < plan.bottoms.size(); ++i) shapes.push_back(plan.bottom_shape(i));
    return Parts(plan.program, shapes, axis, like);
  }
};

}  // namespace

extern const LayerType layer_concat{
    .name = "Concat",
    .max_bottoms = -1,
    .create = create_layer<Concat>,
    .any_format = true,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      const caffe::ConcatParameter& p = param.concat_param();
      return !rows.along(p.has_concat_dim() ? int(p.concat_dim()) : p.axis());
    }};

}  // namespace cafetiere
