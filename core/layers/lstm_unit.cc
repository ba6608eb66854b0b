// SPDX-License-Identifier: Apache-2.0
// LSTMUnit: one time step of an LSTM without its weights. Bottoms: previous c (1, N, D), the inputs
// of the gates i, f, o, g (1, N, 4 D), cont (1, N); tops: c and h (1, N, D). cont has no gradient.
#include <fmt/format.h>

#include "core/device/row_major.h"
#include "core/graph/layer.h"
#include "core/layers/recurrent_cell.h"

namespace cafetiere {
namespace {

class LstmUnit : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const Shape& c = s.bottoms[0];
    if (c.axes() != 3 || c[0] != 1) {
      return invalid_argument("the cell must have shape (1, streams, units), not " + c.str());
    }
    if (!(s.bottoms[1] == Shape{1, c[1], 4 * c[2]}) || !(s.bottoms[2] == Shape{1, c[1]})) {
      return invalid_argument(
          fmt::format("for a cell {} the gates must be {}and cont {}but they are {}and {}", c.str(),
                      Shape{1, c[1], 4 * c[2]}.str(), Shape{1, c[1]}.str(), s.bottoms[1].str(),
                      s.bottoms[2].str()));
    }
    if (param().propagate_down_size() > 2 && param().propagate_down(2)) {
      return invalid_argument("cont has no gradient; set its propagate_down to false");
    }
    s.tops[0] = s.tops[1] = c;
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const int64_t units = plan.bottom_shape(0)[2];
    const TensorId gates = plan.new_tensor("gates", plan.bottom_shape(1));
    plan.saved = {gates};
    const TensorId c = plan.new_top(0), h = plan.new_top(1);
    range_step(plan.program, plan.step("forward"), plan.bottoms, {c, h, gates},
               plan.bottom_shape(0)[1],
               [=, forward = cell_passes<LstmCell>().forward](
                   int64_t begin, int64_t end, const auto& in, const auto& out, const auto&) {
                 for (int64_t n = begin; n < end; ++n) {
                   const int64_t at = n * units;
                   float* act = out[2] + 4 * at;
                   std::copy_n(in[1] + 4 * at, 4 * units, act);
                   forward(units, in[2][n], in[0] + at, act, out[0] + at, out[1] + at);
                 }
               });
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0] && !plan.propagate_down[1]) return {};
    const int64_t units = plan.bottom_shape(0)[2];
    const TensorId dc = plan.new_bottom_diff(0), dgates = plan.new_bottom_diff(1);
    range_step(plan.program, plan.step("backward"),
               {plan.bottoms[0], plan.bottoms[2], plan.saved[0], plan.tops[0], plan.top_diffs[0],
                plan.top_diffs[1]},
               {dc, dgates}, plan.bottom_shape(0)[1],
               [=, backward = cell_passes<LstmCell>().backward](
                   int64_t begin, int64_t end, const auto& in, const auto& out, const auto&) {
                 for (int64_t n = begin; n < end; ++n) {
                   const int64_t at = n * units;
                   backward(units, in[1][n], in[0] + at, in[2] + 4 * at, in[3] + at,
                            in[5] ? in[5] + at : nullptr, in[4] ? in[4] + at : nullptr,
                            out[1] + 4 * at, out[0] + at);
                 }
               });
    for (size_t i = 0; i < 2; ++i) {
      if (!plan.propagate_down[i]) plan.bottom_diffs[i] = kNoTensor;
    }
    return {};
  }
};

}  // namespace

extern const LayerType layer_lstm_unit{
    .name = "LSTMUnit",
    .min_bottoms = 3,
    .max_bottoms = 3,
    .min_tops = 2,
    .max_tops = 2,
    .create = create_layer<LstmUnit>,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) {
      return rows.bottom_axis == 1;
    }};

}  // namespace cafetiere
