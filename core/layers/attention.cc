// SPDX-License-Identifier: Apache-2.0
// Attention: multi-head self-attention with its projections (Vaswani et al. 2017), y = softmax(Q
// K^T / sqrt(D / heads)) V W^T + b. Bottom and top: (N, tokens, D). Blobs: query, key and value
// weights (3 D, D) [, their biases (3 D)], output weights (D, D) [, bias (D)].
#include <fmt/format.h>

#include "core/layers/linear.h"

namespace cafetiere {
namespace {

class Attention : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::AttentionParameter& p = param().attention_param();
    const Shape& x = s.bottoms[0];
    if (x.axes() != 3 || x.count() == 0) {
      return invalid_argument("needs a bottom (batch, tokens, features), not " + x.str());
    }
    if (p.num_heads() < 1 || x[2] % p.num_heads()) {
      return invalid_argument(
          fmt::format("attention_param: num_heads {} must divide the {} features of bottom {}",
                      p.num_heads(), x[2], x.str()));
    }
    s.tops[0] = x;
    for (int64_t outputs : {3 * x[2], x[2]}) {
      s.params.push_back({Shape{outputs, x[2]}, p.weight_filler()});
      if (p.bias_term()) s.params.push_back({Shape{outputs}, p.bias_filler()});
    }
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const AttentionGeometry g = geometry(plan);
    const TensorId qkv = inner(plan).forward(plan, "queries, keys, values", plan.bottoms[0]);
    const TensorId mixed = plan.new_tensor("mixed", {g.n * g.tokens, g.features()});
    const TensorId log_sums = plan.new_tensor("log sums", {g.pairs(), g.tokens});
    plan.device.attention(plan.program, plan.step("attention"), g, qkv, mixed, log_sums);
    plan.saved = {qkv, mixed, log_sums};
    plan.tops[0] =
        plan.program.reshaped(outer(plan).forward(plan, "output", mixed), plan.top_shapes[0]);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    const AttentionGeometry g = geometry(plan);
    const TensorId qkv = plan.saved[0], mixed = plan.saved[1], log_sums = plan.saved[2];
    const TensorId dy = plan.top_diffs[0];
    const bool bias = plan.params.size() == 4;
    const auto& diffs = plan.param_diffs;
    outer(plan).gradients(plan, "output gradient", mixed, dy, diffs[bias ? 2 : 1],
                          bias ? diffs[3] : Gradient{});
    const TensorId dmixed = outer(plan).backward(plan, "output backward", dy);
    const TensorId dqkv = plan.new_tensor("queries, keys, values diff", plan.program.shape(qkv));
    plan.device.attention_backward(plan.program, plan.step("attention backward"), g, qkv, mixed,
                                   log_sums, dmixed, dqkv);
    inner(plan).gradients(plan, "input gradient", plan.bottoms[0], dqkv, diffs[0],
                          bias ? diffs[1] : Gradient{});
    if (!plan.propagate_down[0]) return {};
    plan.bottom_diffs[0] =
        plan.program.reshaped(inner(plan).backward(plan, "backward", dqkv), plan.bottom_shape(0));
    return {};
  }

 private:
  AttentionGeometry geometry(const LoweringContext& plan) const {
    const caffe::AttentionParameter& p = param().attention_param();
    const Shape& x = plan.bottom_shape(0);
    return {x[0], x[1], p.num_heads(), x[2] / p.num_heads(), p.causal()};
  }

  /// The projections before and after the heads.
  static Linear inner(const LoweringContext& plan) { return linear(plan, 0, 3); }
  static Linear outer(const LoweringContext& plan) {
    return linear(plan, plan.params.size() == 4 ? 2 : 1, 1);
  }
  static Linear linear(const LoweringContext& plan, size_t weights, int64_t outputs) {
    const Shape& x = plan.bottom_shape(0);
    const bool bias = plan.params.size() == 4;
    return {{.n = x[0] * x[1], .k = x[2], .outputs = outputs * x[2], .inner = x[1]},
            plan.params[weights],
            bias ? plan.params[weights + 1] : kNoTensor};
  }
};

}  // namespace

extern const LayerType layer_attention{
    .name = "Attention",
    .create = create_layer<Attention>,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) {
      return rows.bottom_axis < 1;
    }};

}  // namespace cafetiere
