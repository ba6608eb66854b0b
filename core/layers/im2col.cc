// SPDX-License-Identifier: Apache-2.0
// Im2col: rearranges the patches under a convolution's kernel into channels. Bottom (N.., C,
// spatial..), top (N.., C * kernel, the convolution's spatial..), channel c * kernel + tap; padding
// gives zeros.
#include "core/device/row_major.h"
#include "core/layers/conv_geometry.h"

namespace cafetiere {
namespace {

/// The positions of a convolution's kernel taps in its image.
struct Patches {
  ConvGeometry g;

  /// The input pixel of a tap at an output pixel; -1 in the padding.
  int64_t image_pixel(int64_t tap, int64_t pixel) const {
    int64_t index = 0, scale = 1;
    for (size_t a = g.in.size(); a-- > 0;) {
      const int64_t start = pixel % g.out[a] * g.stride[a] - g.pad[a];
      const int64_t at = start + tap % g.kernel[a] * g.dilation[a];
      if (at < 0 || at >= g.in[a]) return -1;
      index += at * scale;
      scale *= g.in[a], pixel /= g.out[a], tap /= g.kernel[a];
    }
    return index;
  }
};

class Im2col : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape& bottom = s.bottoms[0];
    CFT_ASSIGN(const ConvGeometry g, geometry(bottom));
    std::vector<int64_t> dims = bottom.dims();
    dims.resize(dims.size() - g.out.size() - 1);
    dims.push_back(g.channels * g.kernel_size());
    dims.insert(dims.end(), g.out.begin(), g.out.end());
    s.tops[0] = Shape(std::move(dims));
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const ConvGeometry g, geometry(plan.bottom_shape(0)));
    range_step(plan.program, plan.step("forward"), {plan.bottoms[0]}, {plan.new_top(0)},
               g.n * g.channels,
               [patches = Patches{g}](int64_t begin, int64_t end, const auto& in, const auto& out,
                                      const RunContext&) {
                 for_each(patches, begin, end, [&](int64_t column, int64_t pixel) {
                   out[0][column] = pixel < 0 ? 0.f : in[0][pixel];
                 });
               });
    return {};
  }

  /// The gradient of a pixel is the sum of those of all patches that contain it.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    CFT_ASSIGN(const ConvGeometry g, geometry(plan.bottom_shape(0)));
    range_step(plan.program, plan.step("backward"), {plan.top_diffs[0]}, {plan.new_bottom_diff(0)},
               g.n * g.channels,
               [patches = Patches{g}, pixels = g.in_pixels()](
                   int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 std::fill_n(out[0] + begin * pixels, (end - begin) * pixels, 0.f);
                 for_each(patches, begin, end, [&](int64_t column, int64_t pixel) {
                   if (pixel >= 0) out[0][pixel] += in[0][column];
                 });
               });
    return {};
  }

 private:
  /// Calls f(top element, bottom element or -1) for channels [begin, end) of all images.
  template <class F>
  static void for_each(const Patches& patches, int64_t begin, int64_t end, const F& f) {
    const int64_t taps = patches.g.kernel_size(), out_pixels = patches.g.out_pixels();
    const int64_t in_pixels = patches.g.in_pixels();
    int64_t column = begin * taps * out_pixels;
    for (int64_t channel = begin; channel < end; ++channel) {
      for (int64_t tap = 0; tap < taps; ++tap) {
        for (int64_t out = 0; out < out_pixels; ++out) {
          const int64_t pixel = patches.image_pixel(tap, out);
          f(column++, pixel < 0 ? -1 : channel * in_pixels + pixel);
        }
      }
    }
  }

  /// The geometry of a convolution with one output channel.
  Result<ConvGeometry> geometry(const Shape& bottom) const {
    caffe::ConvolutionParameter p = param().convolution_param();
    p.set_num_output(1);
    p.set_group(1);
    return convolution_geometry(p, bottom);
  }
};

}  // namespace

extern const LayerType layer_im2col{
    .name = "Im2col",
    .create = create_layer<Im2col>,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      return !rows.from(param.convolution_param().axis());
    }};

}  // namespace cafetiere
