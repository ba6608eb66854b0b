// SPDX-License-Identifier: Apache-2.0
// Reorg (Darknet): moves stride x stride pixels to channels or, with `reverse`, channels to pixels.
// The order is that of Darknet's code, which differs from space-to-depth: both directions use
// indices computed from the bottom's shape.
#include <fmt/format.h>

#include "core/device/row_major.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

/// Both directions use one permutation of an image's elements; C, H and W are the bottom's.
struct Reordering {
  int64_t images, channels, height, width, stride;

  int64_t size() const { return channels * height * width; }
  /// The index of element `a` in the blob with fewer channels.
  int64_t wide(int64_t a) const {
    const int64_t few = channels / (stride * stride);
    const int64_t w = a % width, h = a / width % height, c = a / (width * height);
    const int64_t x = w * stride + c / few % stride, y = h * stride + c / few / stride;
    return x + width * stride * (y + height * stride * (c % few));
  }
};

class Reorg : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape& b = s.bottoms[0];
    const caffe::ReorgParameter& p = param().reorg_param();
    const int64_t stride = p.stride();
    if (stride == 0) return invalid_argument("give stride, above 0");
    if (b.axes() != 4 || b[1] % (stride * stride) != 0) {
      return invalid_argument(fmt::format(
          "needs a bottom of 4 axes whose channels {} divides, not {}", stride * stride, b.str()));
    }
    if (p.reverse()) {
      s.tops[0] = {b[0], b[1] / (stride * stride), b[2] * stride, b[3] * stride};
      return {};
    }
    if (b[2] % stride != 0 || b[3] % stride != 0) {
      return invalid_argument(
          fmt::format("stride {} must divide height and width of {}", stride, b.str()));
    }
    s.tops[0] = {b[0], b[1] * stride * stride, b[2] / stride, b[3] / stride};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const TensorId top = plan.new_top(0);
    reorder(plan, plan.step("forward"), plan.bottoms[0], top, param().reorg_param().reverse());
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    reorder(plan, plan.step("backward"), plan.top_diffs[0], plan.new_bottom_diff(0),
            !param().reorg_param().reverse());
    return {};
  }

 private:
  /// to[wide(a)] = from[a] if `widen`, else to[a] = from[wide(a)].
  void reorder(LoweringContext& plan, std::string name, TensorId from, TensorId to,
               bool widen) const {
    const Shape& b = plan.bottom_shape(0);
    const Reordering g{b[0], b[1], b[2], b[3], param().reorg_param().stride()};
    range_step(plan.program, std::move(name), {from}, {to}, g.images * g.size(),
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t a = i % g.size(), other = i - a + g.wide(a);
                   out[0][widen ? other : i] = in[0][widen ? i : other];
                 }
               });
  }
};

}  // namespace

extern const LayerType layer_reorg{
    .name = "Reorg",
    .create = create_layer<Reorg>,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) {
      return rows.bottom_axis == 0;
    }};

}  // namespace cafetiere
