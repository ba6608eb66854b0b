// SPDX-License-Identifier: Apache-2.0
// Crop: cuts the first bottom to the size of the second on the axes from `axis` on, starting at
// `offset` (none = 0, one for all axes, or one for each). Only the shape of the second bottom is
// used.
#include <fmt/format.h>

#include <algorithm>

#include "core/device/row_major.h"
#include "core/graph/layer.h"
#include "core/layers/strided.h"

namespace cafetiere {
namespace {

class Crop : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const Strided box, this->box(s.bottoms[0], s.bottoms[1]));
    s.tops[0] = Shape(box.dims);
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const Strided box, this->box(plan.bottom_shape(0), plan.bottom_shape(1)));
    range_step(plan.program, plan.step("forward"), {plan.bottoms[0]}, {plan.new_top(0)},
               box.lines(),
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 box.read(in[0], out[0], begin, end);
               });
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    CFT_ASSIGN(const Strided box, this->box(plan.bottom_shape(0), plan.bottom_shape(1)));
    serial_step(plan.program, plan.step("backward"), {plan.top_diffs[0]}, {plan.new_bottom_diff(0)},
                [=, count = plan.bottom_shape(0).count()](const auto& in, const auto& out,
                                                          const RunContext&) {
                  std::fill_n(out[0], count, 0.f);
                  box.write(in[0], out[0]);
                });
    return {};
  }

 private:
  Result<Strided> box(const Shape& bottom, const Shape& size) const {
    const caffe::CropParameter& p = param().crop_param();
    CFT_ASSIGN(const int axis, bottom.axis(p.axis()));
    if (size.axes() < bottom.axes()) {
      return invalid_argument("the second bottom must have each axis of the first: " +
                              bottom.str() + " and " + size.str());
    }
    const int cropped = bottom.axes() - axis;
    if (p.offset_size() > 1 && p.offset_size() != cropped) {
      return invalid_argument(
          fmt::format("offset is given {} times for {} cropped axes; give it once or once for each",
                      p.offset_size(), cropped));
    }
    Strided box{bottom.dims(), row_major_strides(bottom.dims())};
    for (int a = axis; a < bottom.axes(); ++a) {
      const int64_t offset =
          p.offset_size() == 0 ? 0 : p.offset(p.offset_size() > 1 ? a - axis : 0);
      if (offset + size[a] > bottom[a]) {
        return invalid_argument(
            fmt::format("axis {}: {} elements from offset {} lie beyond bottom {}", a, size[a],
                        offset, bottom.str()));
      }
      box.dims[size_t(a)] = size[a];
      box.offset += offset * box.strides[size_t(a)];
    }
    return box;
  }
};

}  // namespace

extern const LayerType layer_crop{
    .name = "Crop",
    .min_bottoms = 2,
    .max_bottoms = 2,
    .create = create_layer<Crop>,
    .no_label = true,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      return !rows.from(param.crop_param().axis());
    }};

}  // namespace cafetiere
