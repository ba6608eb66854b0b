// SPDX-License-Identifier: Apache-2.0
// Slice: splits its bottom along one axis at each slice_point, or into tops of equal size.
#include <fmt/format.h>

#include "core/layers/parts.h"

namespace cafetiere {
namespace {

class Slice : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const int axis, this->axis(s.bottoms[0]));
    CFT_ASSIGN(const std::vector<int64_t> ends, this->ends(s.bottoms[0][axis], s.tops.size()));
    int64_t begin = 0;
    for (size_t i = 0; i < ends.size(); ++i) {
      s.tops[i] = s.bottoms[0];
      s.tops[i][axis] = ends[i] - begin;
      begin = ends[i];
    }
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    if (plan.tops.size() == 1) {
      plan.tops[0] = plan.bottoms[0];
      return {};
    }
    CFT_ASSIGN(const int axis, this->axis(plan.bottom_shape(0)));
    const Parts parts(plan.program, plan.top_shapes, axis, plan.bottoms[0]);
    for (size_t i = 0; i < plan.tops.size(); ++i) {
      parts.cut(plan.program, plan.step("forward"), plan.bottoms[0], i, plan.new_top(i));
    }
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    if (plan.tops.size() == 1) {
      plan.bottom_diffs[0] = plan.top_diffs[0];
      return {};
    }
    CFT_ASSIGN(const int axis, this->axis(plan.bottom_shape(0)));
    // Tops that lead to no loss have no gradient; at least one top has one.
    const auto arrived = [](TensorId diff) { return diff != kNoTensor; };
    const TensorId like = *std::find_if(plan.top_diffs.begin(), plan.top_diffs.end(), arrived);
    const Parts parts(plan.program, plan.top_shapes, axis, like);
    parts.join(plan.program, plan.step("backward"), plan.top_diffs, plan.new_bottom_diff(0));
    return {};
  }

 private:
  Result<int> axis(const Shape& bottom) const {
    const caffe::SliceParameter& p = param().slice_param();
    return parts_axis(bottom, p.has_axis(), p.axis(), p.has_slice_dim(), p.slice_dim());
  }

  /// The end of each top along an axis of `size`.
  Result<std::vector<int64_t>> ends(int64_t size, size_t tops) const {
    const auto& points = param().slice_param().slice_point();
    std::vector<int64_t> ends(points.begin(), points.end());
    if (points.empty()) {
      if (size % int64_t(tops) != 0) {
        return invalid_argument(fmt::format(
            "an axis of {} cannot be cut into {} equal tops; give slice_point", size, tops));
      }
      for (size_t i = 1; i < tops; ++i) ends.push_back(size / int64_t(tops) * int64_t(i));
    } else if (ends.size() + 1 != tops) {
      return invalid_argument(
          fmt::format("{} tops need {} slice_point(s), not {}", tops, tops - 1, ends.size()));
    }
    ends.push_back(size);
    int64_t begin = 0;
    for (int64_t end : ends) {
      if (end <= begin && !points.empty()) {
        return invalid_argument(
            fmt::format("slice_point must rise and stay inside the axis of {}", size));
      }
      begin = end;
    }
    return ends;
  }
};

}  // namespace

extern const LayerType layer_slice{
    .name = "Slice",
    .max_tops = -1,
    .create = create_layer<Slice>,
    .any_format = true,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      const caffe::SliceParameter& p = param.slice_param();
      return !rows.along(p.has_slice_dim() ? int(p.slice_dim()) : p.axis());
    }};

}  // namespace cafetiere
