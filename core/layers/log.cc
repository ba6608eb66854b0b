// SPDX-License-Identifier: Apache-2.0
// Log: y = log_base(shift + scale x), element-wise; base -1 stands for e.
#include "core/device/vector_math.h"
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct Log : SlopeOfBottom {
  explicit Log(const caffe::LayerParameter& param)
      : scale(param.log_param().scale()), shift(param.log_param().shift()) {
    const double base = param.log_param().base();
    unit = base == -1 ? 1 : float(1 / elementary::log(base));
  }
  Status check() const {
    if (std::isfinite(unit) && unit != 0) return {};
    return invalid_argument("log_param needs a base above 0 that is not 1 (or -1 for e)");
  }
  float operator()(float x) const { return unit * vec::log(argument(x)); }
  float slope(float x) const { return unit * scale / argument(x); }
  float argument(float x) const { return shift + scale * x; }

  float scale, shift, unit;  ///< unit = 1 / ln base
};

}  // namespace

extern constinit const LayerType layer_log = activation_type<Log>("Log");

}  // namespace cafetiere
