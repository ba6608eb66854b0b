// SPDX-License-Identifier: Apache-2.0
// Linear: an inner product used as a part of a layer, forward and backward.
#pragma once

#include "core/graph/layer.h"

namespace cafetiere {

/// y = x W^T + b for g.n rows; W is (g.outputs, g.k). Input tensors may have any shape of the right
/// count; outputs have the shape (g.n, g.outputs) or (g.n, g.k).
struct Linear {
  InnerProductGeometry g;
  TensorId weights = kNoTensor;
  TensorId bias = kNoTensor;

  TensorId forward(LoweringContext& plan, const char* what, TensorId x) const {
    const TensorId y = plan.new_tensor(what, {g.n, g.outputs});
    plan.device.inner_product(plan.program, plan.step(what), g,
                              plan.program.reshaped(x, {g.n, g.k}), weights, bias, y, false);
    return y;
  }

  /// Emits the gradients of the weights and of the bias where they are needed.
  void gradients(LoweringContext& plan, const char* what, TensorId x, TensorId dy,
                 Gradient of_weights, Gradient of_bias = {}) const {
    dy = plan.program.reshaped(dy, {g.n, g.outputs});
    if (of_bias.tensor != kNoTensor) {
      plan.device.channel_sums(plan.program, plan.step(what), {.a = dy}, of_bias, {});
    }
    if (of_weights.tensor == kNoTensor) return;
    plan.device.inner_product_backward_weights(
        plan.program, plan.step(what), g, plan.program.reshaped(x, {g.n, g.k}), dy, of_weights);
  }

  /// The gradient with respect to x.
  TensorId backward(LoweringContext& plan, const char* what, TensorId dy) const {
    const TensorId dx = plan.new_tensor(what, {g.n, g.k});
    plan.device.inner_product_backward_data(
        plan.program, plan.step(what), g, plan.program.reshaped(dy, {g.n, g.outputs}), weights, dx);
    return dx;
  }
};

}  // namespace cafetiere
