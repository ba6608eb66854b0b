// SPDX-License-Identifier: Apache-2.0
// CenterLoss (Wen et al. 2016): half the mean squared distance between rows and the centers of
// their classes. Bottoms: features (M, K..), labels (M); top: the loss (a scalar). Blob: the
// centers (num_output, K). Their gradient is independent of the loss weight: for class j it is sum
// (c_j - x) / (1 + number of rows of j).
#include <fmt/format.h>

#include "core/layers/loss_steps.h"

namespace cafetiere {
namespace {

class CenterLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::CenterLossParameter& p = param().center_loss_param();
    if (p.num_output() == 0) return invalid_argument("give num_output, the number of classes");
    CFT_ASSIGN(const int axis, s.bottoms[0].axis(p.axis()));
    const int64_t rows = s.bottoms[0].count(0, axis);
    if (s.bottoms[1].count() != rows) {
      return invalid_argument(fmt::format("needs one label for each of {} rows, but labels are {}",
                                          rows, s.bottoms[1].str()));
    }
    s.params.push_back({Shape{p.num_output(), s.bottoms[0].count(axis)}, p.center_filler()});
    s.tops[0] = {};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const Rows g = rows(plan);
    plan.saved = {emit_loss(
        plan, LossNormalizer(g.count), {plan.bottoms[0], plan.bottoms[1], plan.params[0]},
        [g](const auto& in, int64_t i) {
          const float* center = in[2] + g.label(in[1][i]) * g.size;
          double sum = 0;
          for (int64_t k = 0; k < g.size; ++k) {
            const double d = double(in[0][i * g.size + k]) - center[k];
            sum += d * d;
          }
          return sum / 2;
        },
        {}, g.classes)};
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    const Rows g = rows(plan);
    if (plan.param_diffs[0].tensor != kNoTensor) move_centers(plan, g);
    if (!plan.propagate_down[0]) return {};
    emit_loss_gradient(plan, {.outer = g.count, .classes = g.size, .inner = 1},
                       LossNormalizer(g.count), {plan.bottoms[0], plan.bottoms[1], plan.params[0]},
                       plan.saved[0], plan.top_diffs[0], plan.new_bottom_diff(0),
                       [g](const auto& in, int64_t i) {
                         const float* center = in[2] + g.label(in[1][i]) * g.size;
                         return [=, x = in[0]](int64_t k, int64_t e) { return x[e] - center[k]; };
                       });
    return {};
  }

 private:
  struct Rows {
    int64_t count, size, classes;
    /// A label out of range counts as class 0; emit_loss() reports it.
    int64_t label(float value) const { return std::max<int64_t>(0, index_below(value, classes)); }
  };

  Rows rows(const LoweringContext& plan) const {
    const Shape& centers = plan.program.shape(plan.params[0]);
    const int64_t size = centers.count() / param().center_loss_param().num_output();
    return {plan.bottom_shape(1).count(), size, param().center_loss_param().num_output()};
  }

  static void move_centers(LoweringContext& plan, const Rows& g) {
    const Gradient to = plan.param_diffs[0];
    range_step(
        plan.program, plan.step("centers"), {plan.bottoms[0], plan.bottoms[1], plan.params[0]},
        {to.tensor}, g.classes,
        [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext& run) {
          std::vector<double> sum(size_t(g.size));
          for (int64_t j = begin; j < end; ++j) {
            std::ranges::fill(sum, 0.);
            int64_t of_class = 0;
            for (int64_t i = 0; i < g.count; ++i) {
              if (g.label(in[1][i]) != j) continue;
              ++of_class;
              for (int64_t k = 0; k < g.size; ++k) {
                sum[size_t(k)] += double(in[2][j * g.size + k]) - in[0][i * g.size + k];
              }
            }
            for (int64_t k = 0; k < g.size; ++k) {
              put(out[0] + j * g.size + k, float(sum[size_t(k)] / double(1 + of_class)),
                  to.adds(run));
            }
          }
        });
  }
};

}  // namespace

extern const LayerType layer_center_loss{
    .name = "CenterLoss",
    .min_bottoms = 2,
    .max_bottoms = 2,
    .create = create_layer<CenterLoss>,
    .loss = true,
    .no_label = true,
    .labels = [](const caffe::LayerParameter& param, const Shape&) {
      return LabelRange{param.center_loss_param().num_output(), {}};
    }};

}  // namespace cafetiere
