// SPDX-License-Identifier: Apache-2.0
// Dropout: in training keeps an element with probability 1 - ratio and scales it by 1 / (1 - ratio);
// the identity otherwise (Srivastava et al. 2014, inverted form).
#include "core/base/philox.h"
#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Dropout : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const float ratio = param().dropout_param().dropout_ratio();
    if (!(ratio >= 0 && ratio < 1)) return invalid_argument("dropout_ratio must be in [0, 1)");
    s.tops[0] = s.bottoms[0];
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    if (!plan.train) {
      plan.tops[0] = plan.bottoms[0];
      return {};
    }
    const TensorId x = plan.bottoms[0];
    mask(plan, plan.step("forward"), plan.new_top(0), x);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    if (!plan.train) {
      plan.bottom_diffs[0] = plan.top_diffs[0];
      return {};
    }
    const TensorId dy = plan.top_diffs[0];
    mask(plan, plan.step("backward"), plan.new_bottom_diff(0), dy);
    return {};
  }

 private:
  /// The same mask in both directions, as it depends on nothing but the seed and the position: the
  /// sub-step, the layer's name, the row among all shards and the element.
  void mask(LoweringContext& plan, std::string name, TensorId out, TensorId in) const {
    const float ratio = param().dropout_param().dropout_ratio();
    const float scale = 1 / (1 - ratio);
    const uint32_t threshold = uint32_t(double(ratio) * 4294967296.0);
    map_indexed(
        plan.program, std::move(name),
        [=, purpose = "dropout " + plan.name](const RunContext& run) {
          const uint64_t key = Philox::key(run.seed, purpose);
          const uint32_t step = uint32_t(run.sub_step);
          const int64_t first = run.first_sample;
          return [=](float x, int64_t sample, int64_t element) {
            const uint64_t row = uint64_t(first + sample);
            const auto bits = Philox::block(
                key, {uint32_t(element / 4), uint32_t(row), uint32_t(row >> 32), step});
            return bits[size_t(element % 4)] >= threshold ? x * scale : 0.f;
          };
        },
        out, in);
  }
};

}  // namespace

extern const LayerType layer_dropout{
    .name = "Dropout", .create = create_layer<Dropout>, .rows_apart = always_apart};

}  // namespace cafetiere
