// SPDX-License-Identifier: Apache-2.0
// Clip: y = min(max(x, min), max), element-wise; the slope is 1 on [min, max].
#include "core/layers/activation.h"

namespace cafetiere {
namespace {

struct Clip : SlopeOfBottom {
  explicit Clip(const caffe::LayerParameter& param)
      : given(param.has_clip_param()),
        min(param.clip_param().min()),
        max(param.clip_param().max()) {}
  Status check() const {
    if (!given) return invalid_argument("needs clip_param { min: ... max: ... }");
    if (!(min <= max)) return invalid_argument("clip_param must have min <= max");
    return {};
  }
  float operator()(float x) const { return x < min ? min : x > max ? max : x; }
  float slope(float x) const { return x >= min && x <= max ? 1.F : 0.F; }

  bool given;
  float min, max;
};

}  // namespace

extern constinit const LayerType layer_clip = activation_type<Clip>("Clip");

}  // namespace cafetiere
