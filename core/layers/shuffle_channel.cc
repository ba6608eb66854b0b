// SPDX-License-Identifier: Apache-2.0
// ShuffleChannel (ShuffleNet, Zhang et al. 2018): transposes the channels, viewed as a matrix of
// `group` rows: channel j group + i of the top is channel i C / group + j of the bottom.
#include <fmt/format.h>

#include "core/device/row_major.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class ShuffleChannel : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape& bottom = s.bottoms[0];
    if (bottom.axes() < 2 || group() == 0 || bottom[1] % group() != 0) {
      return invalid_argument(
          fmt::format("group {} must divide the channels of {}", group(), bottom.str()));
    }
    s.tops[0] = bottom;
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    transpose(plan, plan.step("forward"), plan.bottoms[0], group(), plan.new_top(0));
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    transpose(plan, plan.step("backward"), plan.top_diffs[0], plan.bottom_shape(0)[1] / group(),
              plan.new_bottom_diff(0));
    return {};
  }

 private:
  int64_t group() const { return param().shuffle_channel_param().group(); }

  static void transpose(LoweringContext& plan, std::string name, TensorId from, int64_t rows,
                        TensorId to) {
    const Shape& shape = plan.program.shape(from);
    range_step(plan.program, std::move(name), {from}, {to}, shape[0] * shape[1],
               [=, channels = shape[1], pixels = shape.count(2)](
                   int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t plane = begin; plane < end; ++plane) {
                   const int64_t c = plane % channels;
                   const int64_t source = plane - c + c % rows * (channels / rows) + c / rows;
                   std::copy_n(in[0] + source * pixels, pixels, out[0] + plane * pixels);
                 }
               });
  }
};

}  // namespace

extern const LayerType layer_shuffle_channel{
    .name = "ShuffleChannel",
    .create = create_layer<ShuffleChannel>,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) {
      return rows.bottom_axis != 1;
    }};

}  // namespace cafetiere
