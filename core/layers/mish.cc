// SPDX-License-Identifier: Apache-2.0
// Mish: y = x tanh(log(1 + e^x)), element-wise (Misra 2020).
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

/// With w = e^-|x|, which cannot overflow, tanh(log(1 + e^x)) = gate / all.
struct Mish : SlopeOfBottom {
  explicit Mish(const caffe::LayerParameter&) {}
  float operator()(float x) const {
    const float w = vec::exp(-std::fabs(x));
    return x * (gate(x, w) / all(x, w));
  }
  /// tanh + x tanh', and tanh(log(1 + e^x))' = 4 e^x (1 + e^x) / ((1 + e^x)^2 + 1)^2.
  float slope(float x) const {
    const float w = vec::exp(-std::fabs(x));
    const float rise = 4 * w * (1 + w) * (x > 0 ? w : 1);
    return gate(x, w) / all(x, w) + x * (rise / (all(x, w) * all(x, w)));
  }
  /// (1 + e^x)^2 - 1 and (1 + e^x)^2 + 1, both times w^2 for x > 0.
  static float gate(float x, float w) { return x > 0 ? 1 + 2 * w : w * (w + 2); }
  static float all(float x, float w) { return gate(x, w) + (x > 0 ? 2 * w * w : 2); }
};

}  // namespace

extern constinit const LayerType layer_mish = activation_type<Mish>("Mish");

}  // namespace cafetiere
