// SPDX-License-Identifier: Apache-2.0
// Swish: y = x sigmoid(beta x), element-wise (Ramachandran et al. 2017); beta = 1 is SiLU.
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct Swish : SlopeOfBottom {
  explicit Swish(const caffe::LayerParameter& param) : beta(param.swish_param().beta()) {}
  float operator()(float x) const { return x * vec::sigmoid(beta * x); }
  float slope(float x) const {
    const float s = vec::sigmoid(beta * x);
    return s + beta * x * s * (1 - s);
  }

  float beta;
};

}  // namespace

extern constinit const LayerType layer_swish = activation_type<Swish>("Swish");

}  // namespace cafetiere
