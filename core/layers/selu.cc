// SPDX-License-Identifier: Apache-2.0
// SeLu: y = lambda x above 0, lambda alpha (e^x - 1) below, element-wise (Klambauer et al. 2017).
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct SeLu : SlopeOfBottom {
  explicit SeLu(const caffe::LayerParameter& param)
      : lambda(param.selu_param().lambda()), alpha(param.selu_param().alpha()) {}
  float operator()(float x) const { return lambda * (x > 0 ? x : alpha * vec::expm1(x)); }
  float slope(float x) const { return lambda * (x > 0 ? 1 : alpha * vec::exp(x)); }

  float lambda, alpha;
};

}  // namespace

extern constinit const LayerType layer_selu = activation_type<SeLu>("SeLu");

}  // namespace cafetiere
