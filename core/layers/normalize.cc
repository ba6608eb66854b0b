// SPDX-License-Identifier: Apache-2.0
// Normalize (SSD): y = scale x / norm, where norm is the L2 norm of an image (across_spatial) or of
// the channels of a pixel. Blob: scale, a single one (no axes; channel_shared) or one per channel.
// The gradient is SSD's: with a scale per channel, its sum omits the scales, so it is exact only
// while they are equal. With normalize_param, it is happynear's layer of that name
// (PixelNormalize).
#include <cmath>

#include "core/device/row_major.h"
#include "core/graph/layer.h"
#include "core/layers/pixel_normalize.h"

namespace cafetiere {
namespace {

/// (N, C, S); one norm per image, or per pixel of an image.
struct Norms {
  int64_t images, channels, pixels;
  bool across, shared;
  float eps;

  int64_t count() const { return across ? images : images * pixels; }
  int64_t size() const { return channels * pixels; }

  /// Calls f(norm, first element, consecutive elements per channel) for norms [begin, end): a norm
  /// covers a pixel or an image.
  template <class F>
  void for_each(int64_t begin, int64_t end, const F& f) const {
    for (int64_t i = begin; i < end; ++i) {
      if (across) {
        f(i, i * size(), pixels);
      } else {
        f(i, i / pixels * size() + i % pixels, 1);
      }
    }
  }
  /// Calls f(element, channel) for the elements of a norm.
  template <class F>
  void for_elements(int64_t first, int64_t run, const F& f) const {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t e = first + c * pixels; e < first + c * pixels + run; ++e) f(e, shared ? 0 : c);
    }
  }
};

class Normalize : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    if (s.tops.size() > 1) {
      return invalid_argument("a second top, the norms, is that of a normalize_param; it has none");
    }
    const Shape& bottom = s.bottoms[0];
    if (bottom.axes() < 2) {
      return invalid_argument("needs a bottom of at least 2 axes (N, C, ..), not " + bottom.str());
    }
    const caffe::NormalizeParameter& p = param().norm_param();
    caffe::FillerParameter one;
    one.set_value(1);
    s.params.push_back({p.channel_shared() ? Shape{} : Shape{bottom[1]},
                        p.has_scale_filler() ? p.scale_filler() : one});
    s.tops[0] = bottom;
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const Norms g = norms(plan);
    const TensorId norm = plan.new_tensor("norm", {g.count()});
    plan.saved = {norm};
    range_step(plan.program, plan.step("forward"), {plan.bottoms[0], plan.params[0]},
               {plan.new_top(0), norm}, g.count(),
               [g](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 g.for_each(begin, end, [&](int64_t i, int64_t first, int64_t run) {
                   double sum = g.eps;
                   g.for_elements(first, run, [&](int64_t e, int64_t) {
                     sum += double(in[0][e]) * double(in[0][e]);
                   });
                   const auto norm = float(std::sqrt(sum));
                   out[1][i] = norm;
                   g.for_elements(first, run, [&](int64_t e, int64_t c) {
                     out[0][e] = in[0][e] / norm * in[1][c];
                   });
                 });
               });
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    const Norms g = norms(plan);
    if (plan.param_diffs[0].tensor != kNoTensor) scale_gradient(plan, g);
    if (!plan.propagate_down[0]) return {};
    range_step(plan.program, plan.step("backward"),
               {plan.bottoms[0], plan.params[0], plan.saved[0], plan.top_diffs[0]},
               {plan.new_bottom_diff(0)}, g.count(),
               [g](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 g.for_each(begin, end, [&](int64_t i, int64_t first, int64_t run) {
                   const double norm = in[2][i];
                   double dot = 0;
                   g.for_elements(first, run, [&](int64_t e, int64_t) {
                     dot += double(in[0][e]) * double(in[3][e]);
                   });
                   const auto share = float(dot / (norm * norm));
                   g.for_elements(first, run, [&](int64_t e, int64_t c) {
                     out[0][e] = in[1][c] * (in[3][e] - in[0][e] * share) / float(norm);
                   });
                 });
               });
    return {};
  }

 private:
  Norms norms(const LoweringContext& plan) const {
    const Shape& shape = plan.bottom_shape(0);
    const caffe::NormalizeParameter& p = param().norm_param();
    return {shape[0], shape[1], shape.count(2), p.across_spatial(), p.channel_shared(), p.eps()};
  }

  /// The sum of dy x / norm, per channel or over all channels.
  static void scale_gradient(LoweringContext& plan, const Norms& g) {
    const TensorId sums = plan.new_tensor("scale sums", {g.channels});
    range_step(plan.program, plan.step("scale sums"),
               {plan.bottoms[0], plan.saved[0], plan.top_diffs[0]}, {sums}, g.channels,
               [g](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t c = begin; c < end; ++c) {
                   double sum = 0;
                   for (int64_t n = 0; n < g.images; ++n) {
                     const int64_t first = (n * g.channels + c) * g.pixels;
                     for (int64_t s = 0; s < g.pixels; ++s) {
                       const float norm = in[1][g.across ? n : n * g.pixels + s];
                       sum += double(in[0][first + s]) * double(in[2][first + s]) / double(norm);
                     }
                   }
                   out[0][c] = float(sum);
                 }
               });
    const Gradient to = plan.param_diffs[0];
    serial_step(plan.program, plan.step("scale gradient"), {sums}, {to.tensor},
                [=](const auto& in, const auto& out, const RunContext& run) {
                  double all = 0;
                  for (int64_t c = 0; c < g.channels; ++c) {
                    all += in[0][c];
                    if (!g.shared) put(out[0] + c, in[0][c], to.adds(run));
                  }
                  if (g.shared) put(out[0], float(all), to.adds(run));
                });
  }
};

}  // namespace

extern const LayerType layer_normalize{
    .name = "Normalize",
    .max_tops = 2,
    .create = [](const caffe::LayerParameter& param) -> std::unique_ptr<Layer> {
      if (param.has_normalize_param()) return std::make_unique<PixelNormalize>(param);
      return std::make_unique<Normalize>(param);
    },
    .rows_apart = [](const caffe::LayerParameter&,
                     const RowPath& rows) { return rows.bottom_axis == 0; }};

}  // namespace cafetiere
