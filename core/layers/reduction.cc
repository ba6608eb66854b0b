// SPDX-License-Identifier: Apache-2.0
// Reduction: the sum, sum of absolute values, sum of squares or mean over all axes from `axis` on,
// times `coeff`; the axes before `axis` are kept.
#include <cmath>

#include "core/device/row_major.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

using ReductionParam = caffe::ReductionParameter;

class Reduction : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape& bottom = s.bottoms[0];
    CFT_ASSIGN(const int axis, bottom.axis(param().reduction_param().axis()));
    s.tops[0] = Shape({bottom.dims().begin(), bottom.dims().begin() + axis});
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const Rows rows = this->rows(plan);
    switch (param().reduction_param().operation()) {
      case ReductionParam::ASUM:
        reduce(plan, rows, [](double x) { return std::fabs(x); });
        break;
      case ReductionParam::SUMSQ:
        reduce(plan, rows, [](double x) { return x * x; });
        break;
      case ReductionParam::SUM:
      case ReductionParam::MEAN:
        reduce(plan, rows, [](double x) { return x; });
        break;
    }
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    const Rows rows = this->rows(plan);
    switch (param().reduction_param().operation()) {
      case ReductionParam::ASUM:
        spread(plan, rows, [](float x) { return x > 0 ? 1.f : x < 0 ? -1.f : 0.f; });
        break;
      case ReductionParam::SUMSQ:
        spread(plan, rows, [](float x) { return 2 * x; });
        break;
      case ReductionParam::SUM:
      case ReductionParam::MEAN:
        spread(plan, rows, [](float) { return 1.f; });
        break;
    }
    return {};
  }

 private:
  struct Rows {
    int64_t count, length;
    float scale;
  };

  Rows rows(const LoweringContext& plan) const {
    const ReductionParam& p = param().reduction_param();
    const int64_t count = plan.top_shapes[0].count();
    const int64_t length = plan.bottom_shape(0).count(plan.top_shapes[0].axes());
    const bool mean = p.operation() == ReductionParam::MEAN;
    return {count, length, mean ? p.coeff() / float(length) : p.coeff()};
  }

  /// y = scale * sum of f(x) over each row.
  template <class F>
  static void reduce(LoweringContext& plan, const Rows& rows, F f) {
    range_step(plan.program, plan.step("forward"), {plan.bottoms[0]}, {plan.new_top(0)}, rows.count,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t r = begin; r < end; ++r) {
                   double sum = 0;
                   for (int64_t i = 0; i < rows.length; ++i) sum += f(in[0][r * rows.length + i]);
                   out[0][r] = rows.scale * float(sum);
                 }
               });
  }

  /// dx = scale * f'(x) * the row's dy.
  template <class F>
  static void spread(LoweringContext& plan, const Rows& rows, F slope) {
    range_step(plan.program, plan.step("backward"), {plan.bottoms[0], plan.top_diffs[0]},
               {plan.new_bottom_diff(0)}, rows.count,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t r = begin; r < end; ++r) {
                   const float scale = rows.scale * in[1][r];
                   for (int64_t i = r * rows.length; i < (r + 1) * rows.length; ++i) {
                     out[0][i] = scale * slope(in[0][i]);
                   }
                 }
               });
  }
};

}  // namespace

extern const LayerType layer_reduction{
    .name = "Reduction",
    .create = create_layer<Reduction>,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      return !rows.from(param.reduction_param().axis());
    }};

}  // namespace cafetiere
