// SPDX-License-Identifier: Apache-2.0
// HardSigmoid: y = min(max(x / 6 + 1/2, 0), 1), element-wise, as in MobileNetV3 (Howard et al.
// 2019).
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct HardSigmoid : SlopeOfTop {
  explicit HardSigmoid(const caffe::LayerParameter&) {}
  float operator()(float x) const {
    const float line = (x + 3) / 6;
    return line < 0 ? 0 : line > 1 ? 1 : line;
  }
  float slope(float y) const { return y > 0 && y < 1 ? 1.F / 6 : 0; }
};

}  // namespace

extern constinit const LayerType layer_hard_sigmoid = activation_type<HardSigmoid>("HardSigmoid");

}  // namespace cafetiere
