// SPDX-License-Identifier: Apache-2.0
// EuclideanLoss: sum (a - b)^2 / (2 N). Two bottoms of one size; the gradient reaches both.
#include "core/device/map.h"
#include "core/device/ref/ref_device.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class EuclideanLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape &a = s.bottoms[0], &b = s.bottoms[1];
    if (a.axes() == 0 || b.axes() == 0 || a[0] != b[0] || a.count() != b.count()) {
      return invalid_argument("the bottoms must have one batch size and element count: " + a.str() +
                              " and " + b.str());
    }
    s.tops[0] = {};
    return {};
  }

  Status forward(LayerPlan& plan) const override {
    const int64_t count = plan.bottom_shape(0).count(), batch = plan.bottom_shape(0)[0];
    ref_step(plan.program, plan.step("forward"), {plan.bottoms[0], plan.bottoms[1]},
             {plan.new_top(0)}, [=](const auto& in, const auto& out, const RunContext&) {
               double sum = 0;
               for (int64_t i = 0; i < count; ++i) {
                 const double d = double(in[0][i]) - in[1][i];
                 sum += d * d;
               }
               out[0][0] = float(sum / double(batch) / 2);
             });
    return {};
  }

  Status backward(LayerPlan& plan) const override {
    const int64_t count = plan.bottom_shape(0).count(), batch = plan.bottom_shape(0)[0];
    for (size_t i = 0; i < 2; ++i) {
      if (!plan.propagate_down[i]) continue;
      const float sign = i == 0 ? 1.f : -1.f;
      ref_step(plan.program, plan.step("backward"),
               {plan.bottoms[0], plan.bottoms[1], plan.top_diffs[0]}, {plan.new_bottom_diff(i)},
               [=](const auto& in, const auto& out, const RunContext&) {
                 const float scale = sign * in[2][0] / float(batch);
                 for (int64_t j = 0; j < count; ++j) out[0][j] = scale * (in[0][j] - in[1][j]);
               });
    }
    return {};
  }
};

}  // namespace

extern const LayerType layer_euclidean_loss{.name = "EuclideanLoss",
                                            .min_bottoms = 2,
                                            .max_bottoms = 2,
                                            .min_tops = 1,
                                            .max_tops = 1,
                                            .create = create_layer<EuclideanLoss>,
                                            .loss = true};

}  // namespace cafetiere
