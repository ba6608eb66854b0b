// SPDX-License-Identifier: Apache-2.0
// ReLU6: y = min(max(x, 0), 6), element-wise (MobileNet, Howard et al. 2017). Some forks have a
// negative slope: y = min(x, 6) where x > 0, negative_slope x elsewhere.
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct ReLU6 {
  explicit ReLU6(const caffe::LayerParameter& param)
      : negative_slope(param.relu6_param().negative_slope()) {}
  Status check() const {
    return negative_slope >= 0 ? Status() : invalid_argument("negative_slope must not be negative");
  }
  float operator()(float x) const { return x < 0 ? negative_slope * x : x > 6 ? 6 : x; }
  /// The top has the bottom's sign, or is 0 where the slope is the same on both sides.
  bool slope_of_top() const { return true; }
  float slope(float y) const { return y > 0 ? (y < 6 ? 1.F : 0.F) : negative_slope; }

  float negative_slope;
};

}  // namespace

extern constinit const LayerType layer_relu6 = activation_type<ReLU6>("ReLU6");

}  // namespace cafetiere
