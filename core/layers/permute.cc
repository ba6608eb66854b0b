// SPDX-License-Identifier: Apache-2.0
// Permute: top axis i is bottom axis order[i]; axes not in `order` follow in their original order.
#include <fmt/format.h>

#include <algorithm>

#include "core/device/row_major.h"
#include "core/graph/layer.h"
#include "core/layers/strided.h"

namespace cafetiere {
namespace {

class Permute : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const std::vector<int> order, this->order(s.bottoms[0]));
    s.tops[0] = Shape(permuted(s.bottoms[0].dims(), order));
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const std::vector<int> order, this->order(plan.bottom_shape(0)));
    permute(plan, plan.step("forward"), plan.bottoms[0], order, plan.new_top(0));
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    CFT_ASSIGN(const std::vector<int> order, this->order(plan.bottom_shape(0)));
    std::vector<int> inverse(order.size());
    for (size_t i = 0; i < order.size(); ++i) inverse[size_t(order[i])] = int(i);
    permute(plan, plan.step("backward"), plan.top_diffs[0], inverse, plan.new_bottom_diff(0));
    return {};
  }

 private:
  Result<std::vector<int>> order(const Shape& bottom) const {
    std::vector<int> order;
    for (int given : param().permute_param().order()) {
      CFT_ASSIGN(const int axis, bottom.axis(given));
      if (std::ranges::count(order, axis) > 0) {
        return invalid_argument(fmt::format("order names axis {} twice", given));
      }
      order.push_back(axis);
    }
    for (int axis = 0; axis < bottom.axes(); ++axis) {
      if (std::ranges::count(order, axis) == 0) order.push_back(axis);
    }
    return order;
  }

  static std::vector<int64_t> permuted(const std::vector<int64_t>& values,
                                       const std::vector<int>& order) {
    std::vector<int64_t> result;
    for (int axis : order) result.push_back(values[size_t(axis)]);
    return result;
  }

  static void permute(LoweringContext& plan, std::string name, TensorId from,
                      const std::vector<int>& order, TensorId to) {
    const std::vector<int64_t> dims = plan.program.shape(from).dims();
    const Strided box{permuted(dims, order), permuted(row_major_strides(dims), order)};
    range_step(plan.program, std::move(name), {from}, {to}, box.lines(),
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 box.read(in[0], out[0], begin, end);
               });
  }
};

}  // namespace

extern const LayerType layer_permute{
    .name = "Permute", .create = create_layer<Permute>, .rows_apart = always_apart};

}  // namespace cafetiere
