// SPDX-License-Identifier: Apache-2.0
// ReLU6: y = min(max(x, 0), 6), element-wise (MobileNet, Howard et al. 2017).
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct ReLU6 : SlopeOfTop {
  explicit ReLU6(const caffe::LayerParameter&) {}
  float operator()(float x) const { return x < 0 ? 0 : x > 6 ? 6 : x; }
  float slope(float y) const { return y > 0 && y < 6 ? 1.F : 0.F; }
};

}  // namespace

extern constinit const LayerType layer_relu6 = activation_type<ReLU6>("ReLU6");

}  // namespace cafetiere
