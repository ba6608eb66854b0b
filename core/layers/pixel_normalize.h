// SPDX-License-Identifier: Apache-2.0
// PixelNormalize: Normalize of happynear's fork. Divides each pixel's channels by their L2 norm,
// sqrt(sum + 1e-6), or by their L1 norm, sum + 1e-6. An optional second top holds the norms (N, 1,
// H, W); its gradient is used if bp_norm is set.
#pragma once

#include <cmath>

#include "core/device/row_major.h"
#include "core/graph/layer.h"

namespace cafetiere {

class PixelNormalize : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const std::string& type = fields().normalize_type();
    if (type != "L2" && type != "L1") {
      return invalid_argument("normalize_type is \"" + type + "\"; use \"L2\" or \"L1\"");
    }
    const Shape& bottom = s.bottoms[0];
    if (bottom.axes() < 2) {
      return invalid_argument("needs a bottom of at least 2 axes (N, C, ..), not " + bottom.str());
    }
    s.tops[0] = bottom;
    if (s.tops.size() == 1) return {};
    s.tops[1] = bottom;
    s.tops[1][1] = 1;
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const Pixels g = pixels(plan);
    Shape norms = plan.bottom_shape(0);
    norms[1] = 1;
    const TensorId norm = plan.tops.size() > 1 ? plan.new_top(1) : plan.new_tensor("norm", norms);
    plan.saved = {norm, plan.new_top(0)};
    range_step(plan.program, plan.step("forward"), {plan.bottoms[0]}, {plan.tops[0], norm}, g.count,
               [g](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t i = begin; i < end; ++i) {
                   double sum = kSmall;
                   g.each(i, [&](int64_t e) {
                     const double x = in[0][e];
                     sum += g.l1 ? std::fabs(x) : x * x;
                   });
                   const auto norm = float(g.l1 ? sum : std::sqrt(sum));
                   out[1][i] = norm;
                   g.each(i, [&](int64_t e) { out[0][e] = in[0][e] / norm; });
                 }
               });
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    const Pixels g = pixels(plan);
    const TensorId of_norm =
        plan.tops.size() > 1 && fields().bp_norm() ? plan.top_diffs[1] : kNoTensor;
    range_step(plan.program, plan.step("backward"),
               {plan.bottoms[0], plan.saved[1], plan.saved[0], plan.top_diffs[0], of_norm},
               {plan.new_bottom_diff(0)}, g.count,
               [g](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t i = begin; i < end; ++i) {
                   double dot = 0;
                   if (in[3]) g.each(i, [&](int64_t e) { dot += double(in[1][e]) * in[3][e]; });
                   g.each(i, [&](int64_t e) {
                     const float x = in[0][e];
                     const float slope = g.l1 ? float((x > 0) - (x < 0)) : in[1][e];
                     const float down = in[3] ? (in[3][e] - slope * float(dot)) / in[2][i] : 0;
                     out[0][e] = down + (in[4] ? in[4][i] * slope : 0);
                   });
                 }
               });
    return {};
  }

 private:
  static constexpr double kSmall = 1e-6;

  struct Pixels {
    int64_t count, channels, plane;
    bool l1;

    template <class F>
    void each(int64_t i, const F& f) const {
      const int64_t first = i / plane * channels * plane + i % plane;
      for (int64_t c = 0; c < channels; ++c) f(first + c * plane);
    }
  };

  const caffe::PixelNormalizeParameter& fields() const { return param().normalize_param(); }
  Pixels pixels(const LoweringContext& plan) const {
    const Shape& s = plan.bottom_shape(0);
    return {s[0] * s.count(2), s[1], s.count(2), fields().normalize_type() == "L1"};
  }
};

}  // namespace cafetiere
