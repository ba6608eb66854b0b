// SPDX-License-Identifier: Apache-2.0
// RNN: h = tanh(W_hh h' + W_xh x + b_h) over a sequence, top = tanh(W_ho h + b_o). Bottoms: x (T,
// N, ..), cont (T, N), which is 0 where a sequence begins [, x_static (N, ..), an input to every
// step] and, with expose_hidden, the initial h (1, N, D); tops: the output (T, N, D) and, with
// expose_hidden, the final h.
// Blobs: W_xh (D, I), b_h (D) [, W_xh_static (D, S)], W_hh (D, D), W_ho (D, D), b_o (D).
#include "core/layers/recurrent.h"

namespace cafetiere {
namespace {

class Rnn : public Recurrent<TanhCell> {
 public:
  using Recurrent::Recurrent;

 protected:
  void add_output_params(LayerShapes& s, const RecurrentSizes& z) const override {
    const caffe::RecurrentParameter& p = param().recurrent_param();
    s.params.push_back({Shape{z.units, z.units}, p.weight_filler()});
    s.params.push_back({Shape{z.units}, p.bias_filler()});
  }

  void output(LoweringContext& plan, const RecurrentSizes& z, TensorId hidden) const override {
    const TensorId sum = linear(plan, z).forward(plan, "output", hidden);
    const TensorId top = plan.new_tensor("top", plan.program.shape(sum));
    map(
        plan.program, plan.step("tanh"), [](float v) { return vec::tanh(v); }, top, sum);
    plan.tops[0] = plan.program.reshaped(top, plan.top_shapes[0]);
  }

  TensorId output_backward(LoweringContext& plan, const RecurrentSizes& z,
                           TensorId hidden) const override {
    if (plan.top_diffs[0] == kNoTensor) return kNoTensor;
    const TensorId down = plan.new_tensor("output diff", plan.top_shapes[0]);
    map(
        plan.program, plan.step("tanh backward"), [](float d, float y) { return d * (1 - y * y); },
        down, plan.top_diffs[0], plan.tops[0]);
    const size_t weights = z.recurrent() + 1;
    linear(plan, z).gradients(plan, "output gradient", hidden, down, plan.param_diffs[weights],
                              plan.param_diffs[weights + 1]);
    return linear(plan, z).backward(plan, "output backward", down);
  }

 private:
  static Linear linear(const LoweringContext& plan, const RecurrentSizes& z) {
    const size_t weights = z.recurrent() + 1;
    return {{z.rows(), z.units, z.units}, plan.params[weights], plan.params[weights + 1]};
  }
};

}  // namespace

extern const LayerType layer_rnn{
    .name = "RNN",
    .min_bottoms = 2,
    .max_bottoms = 4,
    .max_tops = 2,
    .create = create_layer<Rnn>,
    .rows_apart = [](const caffe::LayerParameter&, const RowPath& rows) {
      return rows.bottom_axis == 1;
    }};

}  // namespace cafetiere
