// SPDX-License-Identifier: Apache-2.0
// AxisSpan: where the operand of Scale and Bias lies: over `num_axes` axes of the first bottom, from
// `axis` on. With one bottom the operand is learned, with two it is the second.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "core/graph/layer.h"

namespace cafetiere {

struct AxisSpan {
  Shape operand;
  int64_t outer, dim, inner;  ///< the bottom as [outer][operand][inner]
  bool direct;                ///< axis 1 alone: the bottom is of that form as it is

  /// `param` is a ScaleParameter or a BiasParameter: axis may be negative, num_axes -1 = up to the
  /// last axis. `given` is the second bottom's shape, which decides instead of num_axes, or null.
  template <class P>
  static Result<AxisSpan> of(const P& param, const Shape& bottom, const Shape* given) {
    const bool scalar = given && given->axes() == 0;
    CFT_ASSIGN(const int axis, bottom.axis(scalar && bottom.axes() > 0 ? 0 : param.axis()));
    const int to_end = bottom.axes() - axis;
    const int axes = given ? given->axes() : param.num_axes() < 0 ? to_end : param.num_axes();
    if (axes > to_end) {
      return invalid_argument(fmt::format("the operand spans {} axes from axis {}, beyond shape {}",
                                          axes, axis, bottom.str()));
    }
    const auto first = bottom.dims().begin() + axis;
    Shape operand(std::vector<int64_t>(first, first + axes));
    if (given && !(*given == operand)) {
      return invalid_argument(fmt::format("the second bottom has shape {} but must match {}",
                                          given->str(), operand.str()));
    }
    return AxisSpan{operand, bottom.count(0, axis), bottom.count(axis, axis + axes),
                    bottom.count(axis + axes), axis == 1 && axes == 1};
  }
  template <class P>
  static Result<AxisSpan> of(const P& param, const LayerShapes& s) {
    return of(param, s.bottoms[0], s.bottoms.size() > 1 ? &s.bottoms[1] : nullptr);
  }
  template <class P>
  static Result<AxisSpan> of(const P& param, const LoweringContext& plan) {
    return of(param, plan.bottom_shape(0),
              plan.bottoms.size() > 1 ? &plan.bottom_shape(1) : nullptr);
  }

  /// A tensor of the bottom's shape with the operand as its channels, and the way back.
  TensorId view(Program& program, TensorId id) const {
    return direct ? id : program.reshaped(id, {outer, dim, inner});
  }
  TensorId back(Program& program, TensorId id, const Shape& shape) const {
    return direct ? id : program.reshaped(id, shape);
  }
};

/// The operand: one value a channel of AxisSpan::view.
inline TensorId span_operand(const LoweringContext& plan) {
  return plan.bottoms.size() > 1 ? plan.bottoms[1] : plan.params[0];
}

/// Where its gradient goes; nowhere if nobody wants it.
inline Gradient span_gradient(LoweringContext& plan) {
  if (plan.bottoms.size() == 1) return plan.param_diffs[0];
  return plan.propagate_down[1] ? Gradient::plain(plan.new_bottom_diff(1)) : Gradient{};
}

}  // namespace cafetiere
