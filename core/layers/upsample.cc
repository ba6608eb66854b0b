// SPDX-License-Identifier: Apache-2.0
// Upsample: with two bottoms, writes each value to the position where a MAX Pooling found it and
// zeros elsewhere (SegNet); the second bottom is the second top of that Pooling. With one bottom,
// repeats pixels (YOLO): output (h, w) is input (h / scale, w / scale).
#include <fmt/format.h>

#include "core/device/row_major.h"
#include "core/graph/layer.h"
#include "core/layers/indices.h"

namespace cafetiere {
namespace {

class Upsample : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape& bottom = s.bottoms[0];
    if (bottom.axes() != 4) {
      return invalid_argument("needs a bottom of 4 axes (N, C, H, W), not " + bottom.str());
    }
    const bool masked = s.bottoms.size() > 1;
    if (masked && !(s.bottoms[1] == bottom)) {
      return invalid_argument("the second bottom, the indices of a Pooling, has the shape " +
                              s.bottoms[1].str() + " but needs " + bottom.str());
    }
    const caffe::UpsampleParameter& p = param().upsample_param();
    if (!masked && (p.pad_out_h() || p.pad_out_w())) {
      return invalid_argument(
          "pad_out_h and pad_out_w belong to the form with two bottoms: add the second top of the "
          "Pooling, or remove them");
    }
    CFT_ASSIGN(const int64_t h, size(bottom[2], scale(masked, p.has_scale_h(), p.scale_h()),
                                     p.pad_out_h(), masked ? p.upsample_h() : 0));
    CFT_ASSIGN(const int64_t w, size(bottom[3], scale(masked, p.has_scale_w(), p.scale_w()),
                                     p.pad_out_w(), masked ? p.upsample_w() : 0));
    s.tops[0] = {bottom[0], bottom[1], h, w};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    if (plan.bottoms.size() > 1) return put_back(plan);
    const Planes g = planes(plan);
    range_step(plan.program, plan.step("forward"), {plan.bottoms[0]}, {plan.new_top(0)}, g.count,
               [g](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 g.for_pixels(begin, end, [&](int64_t i, int64_t o) { out[0][o] = in[0][i]; });
               });
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    if (plan.bottoms.size() > 1) return take_back(plan);
    const Planes g = planes(plan);
    range_step(plan.program, plan.step("backward"), {plan.top_diffs[0]}, {plan.new_bottom_diff(0)},
               g.count,
               [g](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 std::fill_n(out[0] + begin * g.in_h * g.in_w, (end - begin) * g.in_h * g.in_w,
                             0.F);
                 g.for_pixels(begin, end, [&](int64_t i, int64_t o) { out[0][i] += in[0][o]; });
               });
    return {};
  }

 private:
  struct Planes {
    int64_t count, in_h, in_w, out_h, out_w;

    /// Calls f(input pixel, output pixel) for the planes [begin, end).
    template <class F>
    void for_pixels(int64_t begin, int64_t end, const F& f) const {
      const int64_t scale_h = out_h / in_h, scale_w = out_w / in_w;
      for (int64_t line = begin * out_h; line < end * out_h; ++line) {
        const int64_t from = (line / out_h * in_h + line % out_h / scale_h) * in_w;
        for (int64_t x = 0; x < out_w; ++x) f(from + x / scale_w, line * out_w + x);
      }
    }
  };
  static Planes planes(const LoweringContext& plan) {
    const Shape &in = plan.bottom_shape(0), &out = plan.top_shapes[0];
    return {in[0] * in[1], in[2], in[3], out[2], out[3]};
  }

  /// The default scale is 2 for SegNet's form, 1 for the other.
  int64_t scale(bool masked, bool given, uint32_t of_axis) const {
    const caffe::UpsampleParameter& p = param().upsample_param();
    return given ? of_axis : p.has_scale() ? p.scale() : masked ? 2 : 1;
  }
  static Result<int64_t> size(int64_t in, int64_t scale, bool shorter, int64_t given) {
    if (given > 0) return given;
    if (scale <= 0) return invalid_argument("scale must be above 0");
    if (shorter && scale != 2) return invalid_argument("pad_out_h and pad_out_w need scale 2");
    return in * scale - (shorter ? 1 : 0);
  }

  /// Indices out of range are skipped; among equal indices the last value wins.
  static Status put_back(LoweringContext& plan) {
    const Planes g = planes(plan);
    range_step(plan.program, plan.step("forward"), {plan.bottoms[0], plan.bottoms[1]},
               {plan.new_top(0)}, g.count,
               [g](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 const int64_t pixels = g.in_h * g.in_w, room = g.out_h * g.out_w;
                 std::fill_n(out[0] + begin * room, (end - begin) * room, 0.F);
                 for (int64_t i = begin * pixels; i < end * pixels; ++i) {
                   const int64_t at = index_below(in[1][i], room);
                   if (at >= 0) out[0][i / pixels * room + at] = in[0][i];
                 }
               });
    return {};
  }
  static Status take_back(LoweringContext& plan) {
    const Planes g = planes(plan);
    range_step(plan.program, plan.step("backward"), {plan.top_diffs[0], plan.bottoms[1]},
               {plan.new_bottom_diff(0)}, g.count,
               [g](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 const int64_t pixels = g.in_h * g.in_w, room = g.out_h * g.out_w;
                 for (int64_t i = begin * pixels; i < end * pixels; ++i) {
                   const int64_t at = index_below(in[1][i], room);
                   out[0][i] = at < 0 ? 0 : in[0][i / pixels * room + at];
                 }
               });
    return {};
  }
};

}  // namespace

extern const LayerType layer_upsample{
    .name = "Upsample",
    .max_bottoms = 2,
    .create = create_layer<Upsample>,
    .no_label = true,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) { return !rows.from(2); }};

}  // namespace cafetiere
