// SPDX-License-Identifier: Apache-2.0
// AbsVal: y = |x|, element-wise; the slope at 0 is 0.
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct AbsVal : SlopeOfBottom {
  explicit AbsVal(const caffe::LayerParameter&) {}
  float operator()(float x) const { return std::fabs(x); }
  float slope(float x) const { return float(x > 0) - float(x < 0); }
};

}  // namespace

extern constinit const LayerType layer_abs_val = activation_type<AbsVal>("AbsVal");

}  // namespace cafetiere
