// SPDX-License-Identifier: Apache-2.0
// Normalisation to zero mean and unit variance: steps shared by the normalising layers. A channel
// (axis 1) is normalised as a whole; layers that normalise over other axes reshape to (.., rows,
// ..) first.
#pragma once

#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {

/// y = (x - mean) * inverse, with a mean and an inverse deviation per channel.
inline void normalize(LoweringContext& plan, TensorId x, TensorId mean, TensorId inverse,
                      TensorId y) {
  map_channels<1, 2>(plan.program, plan.step("forward"),
                     [](const auto& v, const auto& c) { return (v[0] - c[0]) * c[1]; }, y, {x},
                     {mean, inverse});
}

/// The gradient of x through mean and deviation: dx = (dy - mean(dy) - y mean(dy y)) * inverse.
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
