// SPDX-License-Identifier: Apache-2.0
// BatchReindex: row i of the top is row index[i] of the bottom; a row may occur any number of
// times. Bottoms: the rows (N, ..), the indices (M); top (M, ..). An index out of range is an
// error.
#include <fmt/format.h>

#include <algorithm>

#include "core/device/row_major.h"
#include "core/device/run_error.h"
#include "core/graph/layer.h"
#include "core/layers/indices.h"

namespace cafetiere {
namespace {

Status no_row(const std::string& layer, float index, int64_t position, int64_t rows) {
  return invalid_argument(
      fmt::format("layer '{}': index {} at position {} of the batch is none of {} rows, 0 to {}; "
                  "correct the indices",
                  layer, index, position, rows, rows - 1));
}

class BatchReindex : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_TRY(s.bottoms[0].axis(0).status());
    if (s.bottoms[1].axes() != 1) {
      return invalid_argument("the second bottom must have 1 axis (the indices), not " +
                              s.bottoms[1].str());
    }
    s.tops[0] = s.bottoms[0];
    s.tops[0][0] = s.bottoms[1][0];
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const Shape& shape = plan.bottom_shape(0);
    range_step(
        plan.program, plan.step("forward"), {plan.bottoms[0], plan.bottoms[1]}, {plan.new_top(0)},
        plan.top_shapes[0][0],
        [rows = shape[0], size = shape.count(1), name = plan.name](
            int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext& run) {
          for (int64_t i = begin; i < end; ++i) {
            const int64_t row = index_below(in[1][i], rows);
            if (row < 0) {
              run.error->report(no_row(name, in[1][i], i, rows));
              std::fill_n(out[0] + i * size, size, 0.f);
            } else {
              std::copy_n(in[0] + row * size, size, out[0] + i * size);
            }
          }
        });
    return {};
  }

  /// The gradient of a row is the sum of the gradients of its copies, added in order.
  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    const Shape& shape = plan.bottom_shape(0);
    range_step(plan.program, plan.step("backward"), {plan.top_diffs[0], plan.bottoms[1]},
               {plan.new_bottom_diff(0)}, shape[0],
               [rows = shape[0], size = shape.count(1), copies = plan.top_shapes[0][0]](
                   int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 std::fill_n(out[0] + begin * size, (end - begin) * size, 0.f);
                 for (int64_t i = 0; i < copies; ++i) {
                   const int64_t row = index_below(in[1][i], rows);
                   if (row < begin || row >= end) continue;
                   for (int64_t j = 0; j < size; ++j) {
                     out[0][row * size + j] += in[0][i * size + j];
                   }
                 }
               });
    return {};
  }
};

}  // namespace

extern const LayerType layer_batch_reindex{.name = "BatchReindex",
                                           .min_bottoms = 2,
                                           .max_bottoms = 2,
                                           .create = create_layer<BatchReindex>,
                                           .no_label = true};

}  // namespace cafetiere
