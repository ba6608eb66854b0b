// SPDX-License-Identifier: Apache-2.0
// SPP: spatial pyramid pooling (He, Zhang, Ren & Sun 2014). Level l pools the image into 2^l x 2^l
// bins; all levels are flattened and concatenated: (N, C, H, W) to (N, C * sum 4^l), whatever H and
// W are. A single level keeps its 4 axes.
#include <fmt/format.h>

#include "core/device/map.h"
#include "core/graph/layer.h"
#include "core/layers/spp_level.h"

namespace cafetiere {

extern const LayerType layer_pooling, layer_concat;

namespace {

class Spp : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    if (height() == 0) return invalid_argument("pyramid_height must be above 0: the levels");
    const Shape& bottom = s.bottoms[0];
    if (bottom.axes() != 4) {
      return invalid_argument("needs a bottom of 4 axes (N, C, H, W), not " + bottom.str());
    }
    int64_t features = 0;
    for (int64_t level = 0; level < height(); ++level) {
      LayerShapes pooled{.bottoms = {bottom}, .tops = {Shape()}, .params = {}, .fed = {}};
      CFT_TRY(pooling(level, bottom)
                  ->shape(pooled)
                  .with_context(fmt::format("pyramid level {} of bottom {}", level, bottom.str())));
      features += pooled.tops[0].count(1);
    }
    s.tops[0] = height() == 1 ? Shape{bottom[0], bottom[1], 1, 1} : Shape{bottom[0], features};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    LoweringContext joined = concat_plan(plan);
    for (int64_t level = 0; level < height(); ++level) {
      LoweringContext pooled = level_plan(plan, level);
      CFT_TRY(pooling(level, plan.bottom_shape(0))->forward(pooled));
      plan.saved.push_back(pooled.saved[0]);
      const Shape flat{pooled.top_shapes[0][0], pooled.top_shapes[0].count(1)};
      joined.bottoms.push_back(height() == 1 ? pooled.tops[0]
                                             : plan.program.reshaped(pooled.tops[0], flat));
    }
    CFT_TRY(concat()->forward(joined));
    plan.tops[0] = joined.tops[0];
    plan.saved.insert(plan.saved.end(), joined.bottoms.begin(), joined.bottoms.end());
    return {};
  }

  /// The sum of the gradients of the levels, coarsest first.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    const size_t levels = size_t(height());
    LoweringContext joined = concat_plan(plan);
    joined.bottoms.assign(plan.saved.begin() + height(), plan.saved.end());
    joined.bottom_diffs.assign(levels, kNoTensor);
    joined.propagate_down.assign(levels, true);
    joined.top_diffs = plan.top_diffs;
    CFT_TRY(concat()->backward(joined));
    TensorId sum = kNoTensor;
    for (size_t level = 0; level < levels; ++level) {
      LoweringContext pooled = level_plan(plan, int64_t(level));
      pooled.saved = {plan.saved[level]};
      pooled.bottom_diffs = {kNoTensor};
      pooled.propagate_down = {true};
      pooled.top_diffs = {plan.program.reshaped(joined.bottom_diffs[level], pooled.top_shapes[0])};
      CFT_TRY(pooling(int64_t(level), plan.bottom_shape(0))->backward(pooled));
      const TensorId down = pooled.bottom_diffs[0];
      if (sum == kNoTensor) {
        sum = down;
      } else {
        const TensorId both = plan.new_tensor("diff", plan.bottom_shape(0));
        add(plan.program, plan.step("backward sum"), both, sum, down);
        sum = both;
      }
    }
    plan.bottom_diffs[0] = sum;
    return {};
  }

 private:
  int64_t height() const { return param().spp_param().pyramid_height(); }

  std::unique_ptr<Layer> pooling(int64_t level, const Shape& bottom) const {
    return layer_pooling.create(spp_level(param(), bottom, level));
  }
  LoweringContext level_plan(LoweringContext& plan, int64_t level) const {
    const Shape& bottom = plan.bottom_shape(0);
    const int64_t bins = int64_t{1} << level;
    return {.program = plan.program,
            .device = plan.device,
            .name = fmt::format("{} level {}", plan.name, level),
            .bottoms = {plan.bottoms[0]},
            .tops = {kNoTensor},
            .top_shapes = {Shape{bottom[0], bottom[1], bins, bins}}};
  }

  static std::unique_ptr<Layer> concat() { return layer_concat.create({}); }
  static LoweringContext concat_plan(LoweringContext& plan) {
    return {.program = plan.program,
            .device = plan.device,
            .name = plan.name,
            .tops = {kNoTensor},
            .top_shapes = {plan.top_shapes[0]}};
  }
};

}  // namespace

extern const LayerType layer_spp{
    .name = "SPP",
    .create = create_layer<Spp>,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) {
      return rows.bottom_axis < 1;
    }};

}  // namespace cafetiere
