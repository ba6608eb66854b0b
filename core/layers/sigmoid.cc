// SPDX-License-Identifier: Apache-2.0
// Sigmoid: y = 1 / (1 + e^-x), element-wise.
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct Sigmoid : SlopeOfTop {
  explicit Sigmoid(const caffe::LayerParameter&) {}
  float operator()(float x) const { return vec::sigmoid(x); }
  float slope(float y) const { return y * (1 - y); }
};

}  // namespace

extern constinit const LayerType layer_sigmoid = activation_type<Sigmoid>("Sigmoid");

}  // namespace cafetiere
