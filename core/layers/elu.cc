// SPDX-License-Identifier: Apache-2.0
// ELU: y = x above 0, alpha (e^x - 1) below, element-wise (Clevert et al. 2016).
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct ELU {
  explicit ELU(const caffe::LayerParameter& param) : alpha(param.elu_param().alpha()) {}
  float operator()(float x) const { return x > 0 ? x : alpha * vec::expm1(x); }
  /// The top has the bottom's sign unless alpha is negative.
  bool slope_of_top() const { return alpha >= 0; }
  float slope(float v) const {
    const float y = slope_of_top() ? v : alpha * vec::expm1(v);
    return v > 0 ? 1 : alpha + y;
  }

  float alpha;
};

}  // namespace

extern constinit const LayerType layer_elu = activation_type<ELU>("ELU");

}  // namespace cafetiere
