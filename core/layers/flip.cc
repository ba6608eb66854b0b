// SPDX-License-Identifier: Apache-2.0
// Flip (happynear): mirrors the last axis (flip_width), the one before it (flip_height), or both.
#include "core/device/row_major.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Flip : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    if (s.bottoms[0].axes() < 2) {
      return invalid_argument("needs a bottom of at least 2 axes, not " + s.bottoms[0].str());
    }
    s.tops[0] = s.bottoms[0];
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    mirror(plan, plan.step("forward"), plan.bottoms[0], plan.new_top(0));
    return {};
  }

  /// Flipping is its own inverse.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    mirror(plan, plan.step("backward"), plan.top_diffs[0], plan.new_bottom_diff(0));
    return {};
  }

 private:
  void mirror(LoweringContext& plan, std::string name, TensorId from, TensorId to) const {
    const Shape& shape = plan.program.shape(from);
    const int64_t width = shape[shape.axes() - 1], height = shape[shape.axes() - 2];
    range_step(
        plan.program, std::move(name), {from}, {to}, shape.count() / std::max<int64_t>(1, width),
        [=, across = param().flip_param().flip_width(), down = param().flip_param().flip_height()](
            int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
          for (int64_t row = begin; row < end; ++row) {
            const int64_t source = down ? row - row % height + height - 1 - row % height : row;
            const float* line = in[0] + source * width;
            if (across) {
              std::reverse_copy(line, line + width, out[0] + row * width);
            } else {
              std::copy_n(line, width, out[0] + row * width);
            }
          }
        });
  }
};

}  // namespace

extern const LayerType layer_flip{
    .name = "Flip",
    .create = create_layer<Flip>,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) {
      return rows.bottom_axis + 2 < rows.bottom.axes();
    }};

}  // namespace cafetiere
