// SPDX-License-Identifier: Apache-2.0
// BNLL: y = log(1 + e^x), element-wise ("binomial normal log likelihood", also called softplus).
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

/// log(1 + w) for w in [0, 1], relative error below 3e-7: 2 artanh(w / (2 + w)), the series to the
/// 15th power.
float log1p_of_fraction(float w) {
  const float z = w / (2 + w), s = z * z;
  return 2 * z *
         vec::polynomial(s, 1.F / 15, 1.F / 13, 1.F / 11, 1.F / 9, 1.F / 7, 1.F / 5, 1.F / 3, 1.F);
}

struct BNLL : SlopeOfTop {
  explicit BNLL(const caffe::LayerParameter&) {}
  float operator()(float x) const {
    return (x > 0 ? x : 0) + log1p_of_fraction(vec::exp(-std::fabs(x)));
  }
  /// sigmoid(x) = 1 - e^-y, as e^y = 1 + e^x.
  float slope(float y) const { return -vec::expm1(-y); }
};

}  // namespace

extern constinit const LayerType layer_bnll = activation_type<BNLL>("BNLL");

}  // namespace cafetiere
