// SPDX-License-Identifier: Apache-2.0
// TanH: y = tanh x, element-wise.
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct TanH : SlopeOfTop {
  explicit TanH(const caffe::LayerParameter&) {}
  float operator()(float x) const { return vec::tanh(x); }
  float slope(float y) const { return (1 - y) * (1 + y); }
};

}  // namespace

extern constinit const LayerType layer_tanh = activation_type<TanH>("TanH");

}  // namespace cafetiere
