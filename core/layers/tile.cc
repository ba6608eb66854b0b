// SPDX-License-Identifier: Apache-2.0
// Tile: repeats its bottom `tiles` times along one axis; the gradient is the sum over the tiles.
#include "core/layers/parts.h"

namespace cafetiere {
namespace {

class Tile : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const int axis, s.bottoms[0].axis(param().tile_param().axis()));
    if (param().tile_param().tiles() <= 0) return invalid_argument("tiles must be above 0");
    s.tops[0] = s.bottoms[0];
    s.tops[0][axis] *= param().tile_param().tiles();
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const Runs runs, this->runs(plan, plan.bottoms[0]));
    Step step = start(plan.step("forward"), plan, runs, plan.bottoms[0], plan.new_top(0));
    step.make = [=, read = step.reads[0], write = step.writes[0]](const Binder& at) {
      const float* x = at(read);
      float* y = at(write);
      return over_rows(runs.outer, runs.size * runs.tiles, [=](int64_t o) {
        float* to = y + o * runs.size * runs.tiles;
        for (int64_t t = 0; t < runs.tiles; ++t) {
          to = std::copy_n(x + o * runs.size, runs.size, to);
        }
      });
    };
    plan.program.step(std::move(step));
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    CFT_ASSIGN(const Runs runs, this->runs(plan, plan.top_diffs[0]));
    Step step =
        start(plan.step("backward"), plan, runs, plan.top_diffs[0], plan.new_bottom_diff(0));
    step.make = [=, read = step.reads[0], write = step.writes[0]](const Binder& at) {
      const float* dy = at(read);
      float* dx = at(write);
      return over_rows(runs.outer, runs.size * runs.tiles, [=](int64_t o) {
        const float* from = dy + o * runs.size * runs.tiles;
        float* to = dx + o * runs.size;
        std::copy_n(from, runs.size, to);
        for (int64_t t = 1; t < runs.tiles; ++t) {
          from += runs.size;
          CFT_INDEPENDENT
          for (int64_t i = 0; i < runs.size; ++i) to[i] += from[i];
        }
      });
    };
    plan.program.step(std::move(step));
    return {};
  }

 private:
  /// The bottom as [outer][size]; the top repeats each run of `size` elements `tiles` times.
  struct Runs {
    int64_t outer, size, tiles;
    Layout layout;
  };

  /// Channels are repeated in any layout; other axes only in row-major order.
  Result<Runs> runs(const LoweringContext& plan, TensorId like) const {
    const Shape& bottom = plan.bottom_shape(0);
    const int64_t tiles = param().tile_param().tiles();
    CFT_ASSIGN(const int axis, bottom.axis(param().tile_param().axis()));
    if (axis != 1) return Runs{bottom.count(0, axis), bottom.count(axis), tiles, Layout::kRowMajor};
    const Layout layout = plan.program.layout(like);
    const ChannelView view(bottom, layout);
    return Runs{view.outer, view.channels * view.inner, tiles, layout};
  }

  static Step start(std::string name, LoweringContext& plan, const Runs& runs, TensorId in,
                    TensorId out) {
    Step step;
    step.name = std::move(name);
    step.kernel = std::string("copy ") + layout_name(runs.layout);
    step.reads = {plan.program.read(in, runs.layout)};
    step.writes = {plan.program.write(out, runs.layout)};
    return step;
  }
};

}  // namespace

extern const LayerType layer_tile{
    .name = "Tile",
    .create = create_layer<Tile>,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      return !rows.along(param.tile_param().axis());
    }};

}  // namespace cafetiere
