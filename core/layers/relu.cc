// SPDX-License-Identifier: Apache-2.0
// ReLU: y = max(x, 0) + negative_slope * min(x, 0), element-wise.
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct ReLU {
  explicit ReLU(const caffe::LayerParameter& param)
      : negative_slope(param.relu_param().negative_slope()) {}
  Rule rule() const { return negative_slope == 0 ? Rule::kRelu : Rule::kOther; }
  float operator()(float x) const { return x > 0 ? x : negative_slope * x; }
  /// The top has the bottom's sign unless the slope is negative.
  bool slope_of_top() const { return negative_slope >= 0; }
  float slope(float v) const { return v > 0 ? 1 : negative_slope; }

  float negative_slope;
};

}  // namespace

extern constinit const LayerType layer_relu = [] {
  LayerType type = activation_type<ReLU>("ReLU");
  type.is_relu = [](const caffe::LayerParameter& param) {
    return param.relu_param().negative_slope() == 0;
  };
  return type;
}();

}  // namespace cafetiere
