// SPDX-License-Identifier: Apache-2.0
// Exp: y = base^(shift + scale x), element-wise; base -1 stands for e.
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct Exp : SlopeOfTop {
  explicit Exp(const caffe::LayerParameter& param) {
    const caffe::ExpParameter& p = param.exp_param();
    const double log_base = p.base() == -1 ? 1 : elementary::log(p.base());
    rate = float(log_base * p.scale());
    offset = float(log_base * p.shift());
  }
  Status check() const {
    if (std::isfinite(rate) && std::isfinite(offset)) return {};
    return invalid_argument("exp_param needs a base above 0 (or -1 for e)");
  }
  float operator()(float x) const { return vec::exp(std::fma(rate, x, offset)); }
  float slope(float y) const { return rate * y; }

  float rate, offset;  ///< y = e^(rate x + offset)
};

}  // namespace

extern constinit const LayerType layer_exp = activation_type<Exp>("Exp");

}  // namespace cafetiere
