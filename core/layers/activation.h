// SPDX-License-Identifier: Apache-2.0
// Activation: a layer that applies one function to each element. The layer's file defines the
// function and its derivative as a functor F:
//
//   explicit F(const caffe::LayerParameter&);
//   Status check() const;              optional: rejects invalid parameters
//   float operator()(float x) const;   y
//   float slope(float v) const;        dy/dx, where v is x or y ...
//   bool slope_of_top() const;         ... y if true; inherited from SlopeOfTop or SlopeOfBottom
//   static constexpr bool kCostly;     optional: see map()
//
// If the derivative needs y alone, the bottom's memory can be reused after the forward pass.
#pragma once

#include <cmath>

#include "core/device/map.h"
#include "core/graph/layer.h"

namespace cafetiere {

struct SlopeOfTop {
  bool slope_of_top() const { return true; }
};
struct SlopeOfBottom {
  bool slope_of_top() const { return false; }
};

template <class F>
class Activation : public Layer {
 public:
  explicit Activation(const caffe::LayerParameter& param) : Layer(param), f_(param) {}

  Status shape(LayerShapes& s) const override {
    if constexpr (requires { f_.check(); }) {
      CFT_TRY(f_.check());
    }
    s.tops[0] = s.bottoms[0];
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const TensorId x = plan.bottoms[0];
    map(plan.program, plan.step("forward"), f_, plan.new_top(0), x);
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    if (!plan.propagate_down[0]) return {};
    const TensorId seen = f_.slope_of_top() ? plan.tops[0] : plan.bottoms[0];
    const TensorId dy = plan.top_diffs[0];
    map(plan.program, plan.step("backward"), Backward{f_}, plan.new_bottom_diff(0), dy, seen);
    return {};
  }

 private:
  struct Backward {
    F f;
    static constexpr bool kCostly = is_costly<F>;
    float operator()(float d, float v) const { return d * f.slope(v); }
  };

  const F f_;
};

/// The registry entry of Activation<F>.
template <class F>
constexpr LayerType activation_type(const char* name) {
  return {.name = name,
          .create = create_layer<Activation<F>>,
          .any_format = true,
          .rows_apart = always_apart};
}

}  // namespace cafetiere
