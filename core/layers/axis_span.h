// SPDX-License-Identifier: Apache-2.0
// AxisSpan: the axes of the first bottom that the operand of Scale and Bias covers: `num_axes` axes
// starting at `axis`. With one bottom the operand is a learned parameter, with two it is the second
// bottom.
#pragma once

#include <fmt/format.h>

#include <vector>

#include "core/graph/layer.h"

namespace cafetiere {

struct AxisSpan {
  Shape operand;
  int64_t outer, dim, inner;  ///< the bottom viewed as [outer][operand][inner]
  bool direct;                ///< the span is axis 1 alone: the bottom already has that form

  /// `param` is a ScaleParameter or a BiasParameter: axis may be negative; num_axes -1 means up to
  /// the last axis. `given` is the second bottom's shape, which overrides num_axes, or null.
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

  /// Reshapes a tensor of the bottom's shape so that the operand is its channels, and back.
  TensorId view(Program& program, TensorId id) const {
    return direct ? id : program.reshaped(id, {outer, dim, inner});
  }
  TensorId back(Program& program, TensorId id, const Shape& shape) const {
    return direct ? id : program.reshaped(id, shape);
  }
};

/// The operand: one value per channel of AxisSpan::view.
inline TensorId span_operand(const LoweringContext& plan) {
  return plan.bottoms.size() > 1 ? plan.bottoms[1] : plan.params[0];
}

/// Where the operand's gradient goes; empty if it is not needed.
inline Gradient span_gradient(LoweringContext& plan) {
  if (plan.bottoms.size() == 1) return plan.param_diffs[0];
  return plan.propagate_down[1] ? Gradient::plain(plan.new_bottom_diff(1)) : Gradient{};
}

}  // namespace cafetiere
