// SPDX-License-Identifier: Apache-2.0
// Code shared by the batch normalisation layers: the per-channel scale and shift after the
// normalisation, and passing statistics to the solver.
#pragma once

#include <string>

#include "core/device/row_major.h"
#include "core/layers/normalize.h"

namespace cafetiere {

/// A parameter of C values, whatever its axes, as a vector of C channels.
inline TensorId per_channel(LoweringContext& plan, size_t blob) {
  const TensorId id = plan.params[blob];
  return plan.program.reshaped(id, {plan.program.shape(id).count()});
}

/// out[c] = f(first[c], others[c]...).
template <class F, class... In>
TensorId per_channel_map(LoweringContext& plan, const char* what, F f, TensorId first,
                         In... others) {
  const TensorId out = plan.new_tensor(what, plan.program.shape(first));
  map(plan.program, plan.step(what), f, out, first, others...);
  return out;
}

/// dx = dy * factor.
inline void scale_channels(LoweringContext& plan, TensorId dy, TensorId factor, TensorId dx) {
  map_channels<1, 1>(plan.program, plan.step("backward"),
                     [](const auto& d, const auto& c) { return d[0] * c[0]; }, dx, {dy}, {factor});
}

/// y = (x - mean) * inverse * scale + shift: normalisation, scale and shift in one step.
struct ScaledNormal {
  TensorId mean, inverse;      ///< inverse: 1 / standard deviation
  TensorId factor;             ///< inverse * scale
  TensorId shift = kNoTensor;  ///< kNoTensor: 0

  static ScaledNormal of(LoweringContext& plan, TensorId mean, TensorId inverse, TensorId scale,
                         TensorId shift) {
    const auto product = [](float i, float s) { return i * s; };
    return {mean, inverse, per_channel_map(plan, "factor", product, inverse, scale), shift};
  }

  void forward(LoweringContext& plan, TensorId x, TensorId y) const {
    if (shift == kNoTensor) return normalize(plan, x, mean, factor, y);
    map_channels<1, 3>(plan.program, plan.step("forward"),
                       [](const auto& v, const auto& c) { return (v[0] - c[0]) * c[1] + c[2]; }, y,
                       {x}, {mean, factor, shift});
  }
};

/// The gradients of a ScaledNormal to compute.
struct ScaledNormalGradients {
  Gradient scale, shift;
  bool by_batch;  ///< mean and deviation were computed from x
  bool down;      ///< compute the gradient of x, which becomes that of bottom 0
};

/// d shift = sum(dy) and d scale = sum(dy (x - mean)) inverse. For a channel of n elements,
/// dx = (dy - sum(dy) / n - (x - mean) inverse^2 sum(dy (x - mean)) / n) factor
/// with the batch's statistics, otherwise dx = dy factor.
inline void scaled_normal_backward(LoweringContext& plan, const ScaledNormal& normal, TensorId x,
                                   TensorId dy, const ScaledNormalGradients& wanted) {
  Program& p = plan.program;
  const Shape& shape = p.shape(x);
  const int64_t channels = shape[1];
  const float count = float(shape.count() / channels);
  const bool learned = wanted.scale.tensor != kNoTensor || wanted.shift.tensor != kNoTensor;
  const bool centred = wanted.by_batch && wanted.down;
  const TensorId sum = plan.new_tensor("sum", {channels}), dot = plan.new_tensor("dot", {channels});
  if (learned || centred) {
    plan.device.channel_sums(p, plan.step("gradient sums"),
                             {.a = dy, .b = x, .centre = normal.mean}, Gradient::plain(sum),
                             Gradient::plain(dot));
  }
  if (learned) {
    serial_step(p, plan.step("gradients"), {sum, dot, normal.inverse},
                {wanted.shift.tensor, wanted.scale.tensor},
                [=](const auto& in, const auto& out, const RunContext& run) {
                  for (int64_t c = 0; c < channels; ++c) {
                    if (out[0]) put(out[0] + c, in[0][c], wanted.shift.adds(run));
                    if (out[1]) put(out[1] + c, in[1][c] * in[2][c], wanted.scale.adds(run));
                  }
                });
  }
  if (!wanted.down) return;
  const TensorId dx = plan.new_bottom_diff(0);
  if (!centred) return scale_channels(plan, dy, normal.factor, dx);
  const TensorId mean = per_channel_map(
      plan, "mean diff", [=](float s) { return s / count; }, sum);
  const TensorId slope = per_channel_map(
      plan, "slope", [=](float d, float i) { return d * i * i / count; }, dot, normal.inverse);
  map_channels<2, 4>(
      p, plan.step("backward"),
      [](const auto& d, const auto& c) { return (d[0] - c[2] - (d[1] - c[0]) * c[3]) * c[1]; }, dx,
      {dy, x}, {normal.mean, normal.factor, mean, slope});
}

/// Passes this shard's statistic, times `factor`, to the solver: weighted by the shard's rows, and
/// folded into the statistics of the earlier passes of the step and of the earlier layers that
/// share the blob, as in Caffe. If `value` is kNoTensor, 1 is used.
inline void observe(LoweringContext& plan, size_t blob, TensorId value, float factor,
                    float fraction) {
  const TensorId observation = plan.param_diffs[blob].tensor;
  if (observation == kNoTensor) return;
  Program& p = plan.program;
  const int64_t count = p.shape(plan.params[blob]).count();
  Step step;
  step.name = plan.step("observe");
  step.kernel = "scalar";
  if (value != kNoTensor) step.reads = {p.read(value, Layout::kRowMajor)};
  step.writes = {p.write(observation, Layout::kRowMajor)};
  const bool shared = std::ranges::any_of(p.steps(), [to = step.writes[0]](const Step& earlier) {
    return std::ranges::find(earlier.writes, to) != earlier.writes.end();
  });
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const float* x = reads.empty() ? nullptr : at(reads[0]);
    float* to = at(write);
    const RunContext* run = at.run();
    return Kernel{1, [=](int) {
                    const float weight = factor * run->loss_scale;
                    for (int64_t i = 0; i < count; ++i) {
                      const float seen = (x ? x[i] : 1.F) * weight;
                      to[i] = shared || run->accumulate ? fraction * to[i] + seen : seen;
                    }
                  }};
  };
  p.step(std::move(step));
}

}  // namespace cafetiere
