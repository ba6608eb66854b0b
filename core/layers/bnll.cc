// SPDX-License-Identifier: Apache-2.0
// BNLL: y = log(1 + e^x), element-wise ("binomial normal log likelihood", also called softplus).
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct BNLL : SlopeOfTop {
  explicit BNLL(const caffe::LayerParameter&) {}
  float operator()(float x) const {
    return (x > 0 ? x : 0) + vec::log1p_of_fraction(vec::exp(-std::fabs(x)));
  }
  /// sigmoid(x) = 1 - e^-y, as e^y = 1 + e^x.
  float slope(float y) const { return -vec::expm1(-y); }
};

}  // namespace

extern constinit const LayerType layer_bnll = activation_type<BNLL>("BNLL");

}  // namespace cafetiere
