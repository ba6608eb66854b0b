// SPDX-License-Identifier: Apache-2.0
// Pooling: the maximum or average over windows. Bottom (N, C, H, W), top (N, C, H', W'); an
// optional second top of MAX holds the index of the maximum within its channel.
#include <fmt/format.h>

#include <cmath>

#include "core/graph/layer.h"

namespace cafetiere {
namespace {

using PoolingParam = caffe::PoolingParameter;

constexpr int64_t kMostIndexed = 1 << 24;  // indices are floats, as in Caffe, which hold no more

class Pooling : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const PoolGeometry g, geometry(s.bottoms[0]));
    if (s.tops.size() > 1 && !g.max) {
      return invalid_argument("only MAX pooling has a second top (the chosen indices)");
    }
    for (Shape& top : s.tops) top = {g.n, g.channels, g.out_h, g.out_w};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(PoolGeometry g, geometry(plan.bottom_shape(0)));
    g.shows_index = plan.tops.size() > 1;
    const TensorId top = plan.new_top(0);
    const TensorId index = g.max ? plan.new_tensor("index", plan.top_shapes[0]) : kNoTensor;
    plan.device.pooling(plan.program, plan.step("forward"), g, plan.bottoms[0], top, index);
    if (plan.tops.size() > 1) plan.tops[1] = index;
    plan.saved = {index};
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0] || plan.top_diffs[0] == kNoTensor) return {};
    CFT_ASSIGN(PoolGeometry g, geometry(plan.bottom_shape(0)));
    if (g.max && g.in_h * g.in_w > kMostIndexed) {
      return invalid_argument(
          fmt::format("MAX pooling has no gradient for channels of {} pixels, above {}: crop the "
                      "images, or scale them down",
                      g.in_h * g.in_w, kMostIndexed));
    }
    g.shows_index = plan.tops.size() > 1;
    const TensorId down = plan.new_bottom_diff(0);
    plan.device.pooling_backward(plan.program, plan.step("backward"), g, plan.top_diffs[0],
                                 plan.saved[0], down);
    return {};
  }

 private:
  Result<PoolGeometry> geometry(const Shape& bottom) const {
    const PoolingParam& p = param().pooling_param();
    if (bottom.axes() != 4) {
      return invalid_argument("needs a bottom of 4 axes (N, C, H, W), not " + bottom.str());
    }
    if (p.pool() == PoolingParam::STOCHASTIC) {
      return invalid_argument("pool: STOCHASTIC has no CPU form; use MAX or AVE");
    }
    PoolGeometry g;
    g.max = p.pool() == PoolingParam::MAX;
    g.n = bottom[0], g.channels = bottom[1], g.in_h = bottom[2], g.in_w = bottom[3];
    CFT_TRY(window(p, g));
    if (!p.avg_include_pad() && !g.max && (g.pad_h || g.pad_w)) {
      return invalid_argument(
          "avg_include_pad: false is not available; padding counts in a mean, as in Caffe: pad "
          "with a "
          "layer of its own, or remove the field");
    }
    g.out_h = outputs(p, g.in_h, g.kernel_h, g.stride_h, g.pad_h);
    g.out_w = outputs(p, g.in_w, g.kernel_w, g.stride_w, g.pad_w);
    if (g.pad_h || g.pad_w) {
      if ((g.out_h - 1) * g.stride_h >= g.in_h + g.pad_h) --g.out_h;
      if ((g.out_w - 1) * g.stride_w >= g.in_w + g.pad_w) --g.out_w;
    }
    if (g.out_h <= 0 || g.out_w <= 0) {
      return invalid_argument("the window is larger than the padded input " + bottom.str());
    }
    return g;
  }

  static Status window(const PoolingParam& p, PoolGeometry& g) {
    const bool hw = p.has_kernel_h() || p.has_kernel_w();
    if (p.global_pooling()) {
      if (hw || p.has_kernel_size() || p.pad() || p.pad_h() || p.pad_w() || p.stride() != 1) {
        return invalid_argument("global_pooling takes no kernel, no pad and stride 1");
      }
      g.kernel_h = g.in_h, g.kernel_w = g.in_w;
      return {};
    }
    if (p.has_kernel_size() == hw || p.has_kernel_h() != p.has_kernel_w()) {
      return invalid_argument("give kernel_size, or both kernel_h and kernel_w");
    }
    g.kernel_h = hw ? p.kernel_h() : p.kernel_size();
    g.kernel_w = hw ? p.kernel_w() : p.kernel_size();
    const bool pads = p.has_pad_h() || p.has_pad_w();
    if (pads && (p.has_pad() || p.has_pad_h() != p.has_pad_w())) {
      return invalid_argument("give pad, or both pad_h and pad_w");
    }
    g.pad_h = pads ? p.pad_h() : p.pad();
    g.pad_w = pads ? p.pad_w() : p.pad();
    const bool strides = p.has_stride_h() || p.has_stride_w();
    if (strides && (p.has_stride() || p.has_stride_h() != p.has_stride_w())) {
      return invalid_argument("give stride, or both stride_h and stride_w");
    }
    g.stride_h = strides ? p.stride_h() : p.stride();
    g.stride_w = strides ? p.stride_w() : p.stride();
    if (g.kernel_h <= 0 || g.kernel_w <= 0 || g.stride_h <= 0 || g.stride_w <= 0) {
      return invalid_argument("kernel and stride must be above 0");
    }
    if (g.pad_h >= g.kernel_h || g.pad_w >= g.kernel_w) {
      return invalid_argument("pad must be smaller than the kernel");
    }
    return {};
  }

  static int64_t outputs(const PoolingParam& p, int64_t in, int64_t kernel, int64_t stride,
                         int64_t pad) {
    const double steps = double(in + 2 * pad - kernel) / double(stride);
    return int64_t(p.round_mode() == PoolingParam::FLOOR ? std::floor(steps) : std::ceil(steps)) +
           1;
  }
};

}  // namespace

extern const LayerType layer_pooling{
    .name = "Pooling",
    .max_tops = 2,
    .create = create_layer<Pooling>,
    .any_format = true,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) {
      return rows.bottom_axis < 2;
    }};

}  // namespace cafetiere
