// SPDX-License-Identifier: Apache-2.0
// Eltwise: the element-wise product, weighted sum or maximum of bottoms of equal shape.
#include <fmt/format.h>

#include <algorithm>

#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Eltwise : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::EltwiseParameter& p = param().eltwise_param();
    for (const Shape& bottom : s.bottoms) {
      if (bottom == s.bottoms[0]) continue;
      return invalid_argument(fmt::format("the bottoms must have one shape: {} and {}",
                                          s.bottoms[0].str(), bottom.str()));
    }
    if (p.coeff_size() != 0 && size_t(p.coeff_size()) != s.bottoms.size()) {
      return invalid_argument(
          fmt::format("coeff is given {} time(s) for {} bottoms; give one for "
                      "each or none",
                      p.coeff_size(), s.bottoms.size()));
    }
    if (p.coeff_size() != 0 && p.operation() == caffe::EltwiseParameter::PROD) {
      return invalid_argument("a product takes no coeff; a SUM does");
    }
    s.tops[0] = s.bottoms[0];
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    switch (param().eltwise_param().operation()) {
      case caffe::EltwiseParameter::PROD:
        plan.tops[0] = product(plan, plan.step("forward"), plan.bottoms);
        break;
      case caffe::EltwiseParameter::SUM:
        sum(plan);
        break;
      case caffe::EltwiseParameter::MAX:
        maximum(plan);
        break;
    }
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    for (size_t i = 0; i < plan.bottoms.size(); ++i) {
      if (!plan.propagate_down[i]) continue;
      switch (param().eltwise_param().operation()) {
        case caffe::EltwiseParameter::PROD:
          product_backward(plan, i);
          break;
        case caffe::EltwiseParameter::SUM:
          sum_backward(plan, i);
          break;
        case caffe::EltwiseParameter::MAX:
          maximum_backward(plan, i);
          break;
      }
    }
    return {};
  }

 private:
  /// The product of the factors from left to right; a single factor is returned as it is.
  static TensorId product(LoweringContext& plan, const std::string& name,
                          const std::vector<TensorId>& factors) {
    TensorId result = factors[0];
    for (size_t i = 1; i < factors.size(); ++i) {
      const TensorId next = plan.new_tensor("product", plan.top_shapes[0]);
      map(
          plan.program, name, [](float x, float y) { return x * y; }, next, result, factors[i]);
      result = next;
    }
    return result;
  }

  /// dy times the product of the other bottoms, or dy y / x, which is cheaper for many bottoms but
  /// undefined at x = 0.
  void product_backward(LoweringContext& plan, size_t i) const {
    if (param().eltwise_param().stable_prod_grad()) {
      std::vector<TensorId> factors = plan.bottoms;
      factors.erase(factors.begin() + ptrdiff_t(i));
      factors.insert(factors.begin(), plan.top_diffs[0]);
      plan.bottom_diffs[i] = product(plan, plan.step("backward"), factors);
      return;
    }
    const TensorId dy = plan.top_diffs[0], y = plan.tops[0], x = plan.bottoms[i];
    map(
        plan.program, plan.step("backward"), [](float d, float y, float x) { return y / x * d; },
        plan.new_bottom_diff(i), dy, y, x);
  }

  float coeff(size_t i) const {
    const auto& list = param().eltwise_param().coeff();
    return list.empty() ? 1 : list[int(i)];
  }

  void sum(LoweringContext& plan) const {
    TensorId result = plan.bottoms[0];
    for (size_t i = 1; i < plan.bottoms.size(); ++i) {
      const float a = i == 1 ? coeff(0) : 1, b = coeff(i);
      const TensorId next = plan.new_tensor("sum", plan.top_shapes[0]);
      if (a == 1 && b == 1) {
        add(plan.program, plan.step("forward"), next, result, plan.bottoms[i]);
      } else {
        map(
            plan.program, plan.step("forward"), [=](float x, float y) { return a * x + b * y; },
            next, result, plan.bottoms[i]);
      }
      result = next;
    }
    plan.tops[0] = result;
  }

  void sum_backward(LoweringContext& plan, size_t i) const {
    const TensorId dy = plan.top_diffs[0];
    const float c = coeff(i);
    if (c == 1) {
      plan.bottom_diffs[i] = dy;
      return;
    }
    map(
        plan.program, plan.step("backward"), [=](float d) { return c * d; },
        plan.new_bottom_diff(i), dy);
  }

  /// Bottom 1 wins unless one of bottoms 0, 2, 3, ..., compared in this order, is strictly larger:
  /// Caffe's order for ties. saved[0]: the index of the bottom each element came from, if a
  /// gradient needs it.
  void maximum(LoweringContext& plan) const {
    const bool wanted = std::ranges::find(plan.propagate_down, true) != plan.propagate_down.end();
    TensorId largest = plan.bottoms[1], winner = kNoTensor;
    for (size_t i = 0; i < plan.bottoms.size(); ++i) {
      if (i == 1) continue;
      const TensorId x = plan.bottoms[i];
      if (wanted) winner = next_winner(plan, winner, largest, i);
      const TensorId next = plan.new_tensor("maximum", plan.top_shapes[0]);
      map(
          plan.program, plan.step("forward"), [](float m, float v) { return v > m ? v : m; }, next,
          largest, x);
      largest = next;
    }
    plan.tops[0] = largest;
    plan.saved = {winner};
  }

  /// The index of the largest bottom so far, updated by bottom i.
  static TensorId next_winner(LoweringContext& plan, TensorId winner, TensorId largest, size_t i) {
    const TensorId next = plan.new_tensor("winner", plan.top_shapes[0]);
    const TensorId x = plan.bottoms[i];
    const float index = float(i);
    if (winner == kNoTensor) {
      map(
          plan.program, plan.step("winner"), [=](float m, float v) { return v > m ? index : 1.F; },
          next, largest, x);
    } else {
      map(
          plan.program, plan.step("winner"),
          [=](float w, float m, float v) { return v > m ? index : w; }, next, winner, largest, x);
    }
    return next;
  }

  static void maximum_backward(LoweringContext& plan, size_t i) {
    const TensorId dy = plan.top_diffs[0], winner = plan.saved[0];
    const float index = float(i);
    map(
        plan.program, plan.step("backward"), [=](float d, float w) { return w == index ? d : 0.F; },
        plan.new_bottom_diff(i), dy, winner);
  }
};

}  // namespace

extern const LayerType layer_eltwise{.name = "Eltwise",
                                     .min_bottoms = 2,
                                     .max_bottoms = -1,
                                     .create = create_layer<Eltwise>,
                                     .any_format = true,
                                     .rows_apart = always_apart};

}  // namespace cafetiere
