// SPDX-License-Identifier: Apache-2.0
// Zero mean, unit variance: the steps that the normalising layers share. A channel (axis 1) is what
// is normalised as a whole; a layer that means other axes reshapes to (.., rows, ..) first.
#pragma once

#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {

/// y = (x - mean) * inverse, with one mean and one inverse deviation a channel.
inline void normalize(LoweringContext& plan, TensorId x, TensorId mean, TensorId inverse,
                      TensorId y) {
  map_channels<1, 2>(plan.program, plan.step("forward"),
                     [](const auto& v, const auto& c) { return (v[0] - c[0]) * c[1]; }, y, {x},
                     {mean, inverse});
}

/// The gradient through mean and deviation: dx = (dy - mean(dy) - y mean(dy y)) * inverse.
inline void normalize_backward(LoweringContext& plan, TensorId y, TensorId dy, TensorId inverse,
                               TensorId dx) {
  const Shape& shape = plan.program.shape(y);
  const int64_t channels = shape[1];
  const float count = float(shape.count() / channels);
  const TensorId sum = plan.new_tensor("sum", {channels}), dot = plan.new_tensor("dot", {channels});
  plan.device.channel_sums(plan.program, plan.step("gradient sums"), {.a = dy, .b = y},
                           Gradient::plain(sum), Gradient::plain(dot));
  map_channels<2, 3>(plan.program, plan.step("backward"),
                     [=](const auto& d, const auto& c) {
                       return (d[0] - c[1] / count - d[1] * (c[2] / count)) * c[0];
                     },
                     dx, {dy, y}, {inverse, sum, dot});
}

}  // namespace cafetiere
