// SPDX-License-Identifier: Apache-2.0
// What batch normalisations of forks do behind the normalisation, y = scale x + shift with one of each a
// channel, and how they hand statistics to the solver.
#pragma once

#include <string>

#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {

/// A parameter of C values, whatever its axes, as one value a channel.
inline TensorId per_channel(LoweringContext& plan, size_t blob) {
  const TensorId id = plan.params[blob];
  return plan.program.reshaped(id, {plan.program.shape(id).count()});
}

/// y = params[scale] x + params[shift].
inline void scale_channels(LoweringContext& plan, TensorId x, size_t scale, size_t shift,
                           TensorId y) {
  map_channels<1, 2>(plan.program, plan.step("scale"),
                     [](const auto& v, const auto& c) { return v[0] * c[0] + c[1]; }, y, {x},
                     {per_channel(plan, scale), per_channel(plan, shift)});
}

/// Emits the gradients of both parameters, if wanted; returns that of x, or kNoTensor if `down` is false.
inline TensorId scale_channels_backward(LoweringContext& plan, TensorId x, TensorId dy,
                                        size_t scale, size_t shift, bool down) {
  const Gradient to_scale = plan.param_diffs[scale], to_shift = plan.param_diffs[shift];
  const bool learned = to_scale.tensor != kNoTensor;
  if (learned || to_shift.tensor != kNoTensor) {
    plan.device.channel_sums(plan.program, plan.step("gradients"), dy, learned ? x : kNoTensor,
                             to_shift, to_scale);
  }
  if (!down) return kNoTensor;
  const TensorId dx = plan.new_tensor("scaled diff", plan.program.shape(dy));
  map_channels<1, 1>(plan.program, plan.step("scale backward"),
                     [](const auto& d, const auto& c) { return d[0] * c[0]; }, dx, {dy},
                     {per_channel(plan, scale)});
  return dx;
}

/// Hands this shard's statistic, times `factor`, to the solver: weighted by its rows, and folded into that
/// of the passes before it as Caffe does within a step. `value` kNoTensor stands for 1.
inline void observe(LoweringContext& plan, size_t blob, TensorId value, float factor,
                    float fraction) {
  if (plan.param_diffs[blob].tensor == kNoTensor) return;
  Program& p = plan.program;
  const int64_t count = p.shape(plan.params[blob]).count();
  Step step;
  step.name = plan.step("observe");
  step.kernel = "scalar";
  if (value != kNoTensor) step.reads = {p.read(value, Layout::kRowMajor)};
  step.writes = {p.write(plan.param_diffs[blob].tensor, Layout::kRowMajor)};
  step.make = [=, reads = step.reads, write = step.writes[0]](const Binder& at) {
    const float* x = reads.empty() ? nullptr : at(reads[0]);
    float* to = at(write);
    const RunContext* run = at.run();
    return Kernel{1, [=](int) {
                    const float weight = factor * run->loss_scale;
                    for (int64_t i = 0; i < count; ++i) {
                      const float seen = (x ? x[i] : 1.F) * weight;
                      to[i] = run->accumulate ? fraction * to[i] + seen : seen;
                    }
                  }};
  };
  p.step(std::move(step));
}

/// out = f(the channel's value of each input), one value a channel.
template <class F, class... In>
TensorId per_channel_map(LoweringContext& plan, const char* what, F f, TensorId first,
                         In... others) {
  const TensorId out = plan.new_tensor(what, plan.program.shape(first));
  map(plan.program, plan.step(what), f, out, first, others...);
  return out;
}

}  // namespace cafetiere
