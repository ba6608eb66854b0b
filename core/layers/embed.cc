// SPDX-License-Identifier: Apache-2.0
// Embed: row x of a learned table for every index x, plus a bias. Bottom: indices of any shape in
// [0, input_dim); top: the bottom's shape followed by num_output. An index out of range gives the
// bias alone. Blobs: table (input_dim, num_output)[, bias (num_output)]. Indices have no gradient.
#include <algorithm>

#include "core/device/row_major.h"
#include "core/graph/layer.h"
#include "core/layers/indices.h"

namespace cafetiere {
namespace {

class Embed : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::EmbedParameter& p = param().embed_param();
    if (p.num_output() == 0) return invalid_argument("num_output must be above 0");
    if (p.input_dim() == 0) {
      return invalid_argument("input_dim must be above 0: the number of different indices");
    }
    const int64_t rows = p.input_dim(), size = p.num_output();
    std::vector<int64_t> dims = s.bottoms[0].dims();
    dims.push_back(size);
    s.tops[0] = Shape(std::move(dims));
    s.params.push_back({Shape{rows, size}, p.weight_filler()});
    if (p.bias_term()) s.params.push_back({Shape{size}, p.bias_filler()});
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const bool bias = plan.params.size() > 1;
    range_step(plan.program, plan.step("forward"),
               {plan.bottoms[0], plan.params[0], bias ? plan.params[1] : kNoTensor},
               {plan.new_top(0)}, plan.bottom_shape(0).count(),
               [rows = rows(), size = size()](int64_t begin, int64_t end, const auto& in,
                                              const auto& out, const RunContext&) {
                 for (int64_t i = begin; i < end; ++i) {
                   float* y = out[0] + i * size;
                   const int64_t row = index_below(in[0][i], rows);
                   for (int64_t j = 0; j < size; ++j) {
                     y[j] = (row < 0 ? 0.f : in[1][row * size + j]) + (in[2] ? in[2][j] : 0.f);
                   }
                 }
               });
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (plan.param_diffs.size() > 1 && plan.param_diffs[1].tensor != kNoTensor) {
      const TensorId dy =
          plan.program.reshaped(plan.top_diffs[0], {plan.bottom_shape(0).count(), size()});
      plan.device.channel_sums(plan.program, plan.step("bias gradient"), {.a = dy},
                               plan.param_diffs[1], {});
    }
    if (plan.param_diffs[0].tensor != kNoTensor) table_gradient(plan);
    return {};
  }

 private:
  int64_t rows() const { return param().embed_param().input_dim(); }
  int64_t size() const { return param().embed_param().num_output(); }

  /// The gradient of a row is the sum of the gradients of its uses, added in order.
  void table_gradient(LoweringContext& plan) const {
    const Gradient table = plan.param_diffs[0];
    range_step(
        plan.program, plan.step("table gradient"), {plan.bottoms[0], plan.top_diffs[0]},
        {table.tensor}, rows(),
        [=, uses = plan.bottom_shape(0).count(), rows = rows(), size = size()](
            int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext& run) {
          if (!table.adds(run)) {
            std::fill_n(out[0] + begin * size, (end - begin) * size, 0.f);
          }
          for (int64_t i = 0; i < uses; ++i) {
            const int64_t row = index_below(in[0][i], rows);
            if (row < begin || row >= end) continue;
            for (int64_t j = 0; j < size; ++j) {
              out[0][row * size + j] += in[1][i * size + j];
            }
          }
        });
  }
};

}  // namespace

extern const LayerType layer_embed{
    .name = "Embed", .create = create_layer<Embed>, .rows_apart = always_apart};

}  // namespace cafetiere
