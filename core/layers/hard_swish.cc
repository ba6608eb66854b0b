// SPDX-License-Identifier: Apache-2.0
// HardSwish: y = x min(max(x / 6 + 1/2, 0), 1), element-wise (MobileNetV3, Howard et al. 2019).
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct HardSwish : SlopeOfBottom {
  explicit HardSwish(const caffe::LayerParameter&) {}
  float operator()(float x) const { return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6; }
  float slope(float x) const { return x <= -3 ? 0 : x >= 3 ? 1 : (2 * x + 3) / 6; }
};

}  // namespace

extern constinit const LayerType layer_hard_swish = activation_type<HardSwish>("HardSwish");

}  // namespace cafetiere
