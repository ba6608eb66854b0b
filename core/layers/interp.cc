// SPDX-License-Identifier: Apache-2.0
// Interp: resizes the last two axes to height x width, to those of a second bottom, or by
// zoom_factor. BILINEAR either aligns the corner pixels (align_corners; zooming by z gives size
// (size - 1) z + 1) or treats pixels as areas (size z); NEAREST takes the source pixel at floor(i
// in / out). As in DeepLab, shrink_factor s is applied first and gives (size - 1) / s + 1, and
// negative pad_beg and pad_end crop the input.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/device/row_major.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

using InterpParam = caffe::InterpParameter;

/// One axis: output i is (1 - weight) in[low] + weight in[high].
struct Tap {
  int64_t low, high;
  float weight;
};

/// Interpolation of a plane along both axes.
struct Resize {
  int64_t planes, in_width, in_pixels;
  std::vector<Tap> rows, columns;

  int64_t out_pixels() const { return int64_t(rows.size() * columns.size()); }
  /// Calls f(output pixel, input pixel, weight) for the four neighbours of every output pixel.
  template <class F>
  void for_each(const F& f) const {
    int64_t pixel = 0;
    for (const Tap& r : rows) {
      const int64_t low = r.low * in_width, high = r.high * in_width;
      for (const Tap& c : columns) {
        f(pixel, low + c.low, (1 - r.weight) * (1 - c.weight));
        f(pixel, low + c.high, (1 - r.weight) * c.weight);
        f(pixel, high + c.low, r.weight * (1 - c.weight));
        f(pixel, high + c.high, r.weight * c.weight);
        ++pixel;
      }
    }
  }
};

class Interp : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape& bottom = s.bottoms[0];
    if (bottom.axes() < 3 || bottom.count() == 0) {
      return invalid_argument("needs a bottom of at least 3 axes (.., H, W), not " + bottom.str());
    }
    CFT_TRY(check(s));
    const InterpParam& p = param().interp_param();
    const bool sized = p.height() > 0 && p.width() > 0;
    const int h = bottom.axes() - 2, w = h + 1;
    s.tops[0] = bottom;
    if (s.bottoms.size() > 1) {
      const Shape& like = s.bottoms[1];
      s.tops[0][h] = like[like.axes() - 2], s.tops[0][w] = like[like.axes() - 1];
    } else {
      s.tops[0][h] = sized ? p.height() : zoomed(shrunk(inner(bottom[h])));
      s.tops[0][w] = sized ? p.width() : zoomed(shrunk(inner(bottom[w])));
    }
    if (s.tops[0][h] > 0 && s.tops[0][w] > 0) return {};
    return invalid_argument(
        fmt::format("zoom_factor {} makes bottom {} empty", p.zoom_factor(), bottom.str()));
  }

  Status forward(LoweringContext& plan) const override {
    const Resize resize = this->resize(plan);
    range_step(plan.program, plan.step("forward"), {plan.bottoms[0]}, {plan.new_top(0)},
               resize.planes,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t plane = begin; plane < end; ++plane) {
                   const float* x = in[0] + plane * resize.in_pixels;
                   float* y = out[0] + plane * resize.out_pixels();
                   std::fill_n(y, resize.out_pixels(), 0.f);
                   resize.for_each([&](int64_t o, int64_t i, float w) { y[o] += w * x[i]; });
                 }
               });
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    const Resize resize = this->resize(plan);
    range_step(plan.program, plan.step("backward"), {plan.top_diffs[0]}, {plan.new_bottom_diff(0)},
               resize.planes,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t plane = begin; plane < end; ++plane) {
                   const float* dy = in[0] + plane * resize.out_pixels();
                   float* dx = out[0] + plane * resize.in_pixels;
                   std::fill_n(dx, resize.in_pixels, 0.f);
                   resize.for_each([&](int64_t o, int64_t i, float w) { dx[i] += w * dy[o]; });
                 }
               });
    return {};
  }

 private:
  Status check(const LayerShapes& s) const {
    const InterpParam& p = param().interp_param();
    const Shape& bottom = s.bottoms[0];
    const bool sized = p.height() > 0 && p.width() > 0;
    const bool zooms = p.zoom_factor() > 0, shrinks = p.has_shrink_factor();
    if (s.bottoms.size() > 1) {
      if (s.bottoms[1].axes() < 2) {
        return invalid_argument(
            "the second bottom, whose size is taken, has no height and width: " +
            s.bottoms[1].str());
      }
    } else if (p.use_blob_size()) {
      return invalid_argument("use_blob_size needs a second bottom");
    } else if (sized == (zooms || shrinks) || (p.height() > 0) != (p.width() > 0)) {
      return invalid_argument("give height and width, or zoom_factor, above 0");
    }
    if (p.shrink_factor() < 1) return invalid_argument("shrink_factor must be at least 1");
    if (shrinks && !corners()) {
      return invalid_argument("shrink_factor needs mode: BILINEAR and align_corners: true");
    }
    const int h = bottom.axes() - 2;
    if (p.pad_beg() > 0 || p.pad_end() > 0) {
      return invalid_argument("pad_beg and pad_end must be 0 or negative, which cuts edges off");
    }
    if (inner(bottom[h]) > 0 && inner(bottom[h + 1]) > 0) return {};
    return invalid_argument("pad_beg and pad_end leave nothing of " + bottom.str());
  }

  /// The size that pad_beg and pad_end leave.
  int64_t inner(int64_t size) const {
    return size + param().interp_param().pad_beg() + param().interp_param().pad_end();
  }
  int64_t shrunk(int64_t size) const {
    return (size - 1) / param().interp_param().shrink_factor() + 1;
  }

  bool corners() const {
    const InterpParam& p = param().interp_param();
    return p.mode() == InterpParam::BILINEAR && p.align_corners();
  }
  int64_t zoomed(int64_t size) const {
    if (!(param().interp_param().zoom_factor() > 0)) return size;  // only shrink_factor is set
    const double zoom = param().interp_param().zoom_factor();
    return int64_t(corners() ? double(size - 1) * zoom + 1 : double(size) * zoom);
  }

  Resize resize(const LoweringContext& plan) const {
    const Shape &in = plan.bottom_shape(0), &out = plan.top_shapes[0];
    const int h = in.axes() - 2, w = h + 1;
    return {in.count(0, h), in[w], in.count(h), taps(in[h], out[h]), taps(in[w], out[w])};
  }

  std::vector<Tap> taps(int64_t in, int64_t out) const {
    const bool nearest = param().interp_param().mode() == InterpParam::NEAREST;
    std::vector<Tap> taps;
    const int64_t cut = -param().interp_param().pad_beg();
    in = inner(in);
    for (int64_t o = 0; o < out; ++o) {
      const double at = nearest     ? double(o * in / out)
                        : corners() ? double(o * (in - 1)) / double(std::max<int64_t>(1, out - 1))
                                    : (double(o) + 0.5) * double(in) / double(out) - 0.5;
      const double inside = std::clamp(at, 0.0, double(in - 1));
      const int64_t low = int64_t(inside);
      const float weight = float(inside - double(low));
      taps.push_back({cut + low, cut + (weight > 0 ? low + 1 : low), weight});
    }
    return taps;
  }
};

}  // namespace

extern const LayerType layer_interp{
    .name = "Interp",
    .max_bottoms = 2,
    .create = create_layer<Interp>,
    .no_label = true,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) { return !rows.from(-2); }};

}  // namespace cafetiere
