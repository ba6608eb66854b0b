// SPDX-License-Identifier: Apache-2.0
// Power: y = (shift + scale x)^power, element-wise.
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct Power : SlopeOfBottom {
  explicit Power(const caffe::LayerParameter& param)
      : power(param.power_param().power()),
        scale(param.power_param().scale()),
        shift(param.power_param().shift()) {}
  float operator()(float x) const { return raised(shift + scale * x, power); }
  /// Returns 0 for a constant function, whose base might be 0 with a negative exponent.
  float slope(float x) const {
    const float factor = power * scale;
    return factor == 0 ? 0 : factor * raised(shift + scale * x, power - 1);
  }
  /// Avoids a call for the most common exponents.
  static float raised(float base, float exponent) {
    if (exponent == 0) return 1;
    if (exponent == 1) return base;
    if (exponent == 2) return base * base;
    return vec::pow(base, exponent);
  }

  float power, scale, shift;
};

}  // namespace

extern constinit const LayerType layer_power = activation_type<Power>("Power");

}  // namespace cafetiere
