// SPDX-License-Identifier: Apache-2.0
// HuberLoss (Huber 1964): the sum of (a - b)^2 / 2 where |a - b| <= delta and of delta (|a - b| -
// delta / 2) elsewhere, divided by the number of images. Bottoms: a and b of equal size and,
// optionally, image weights; a and b have gradients.
#include <cmath>

#include "core/layers/distance_loss.h"

namespace cafetiere {
namespace {

class Huber {
 public:
  explicit Huber(const caffe::LayerParameter& param) : delta_(param.huber_loss_param().delta()) {}

  Status check() const {
    if (delta_ > 0 && std::isfinite(delta_)) return {};
    return invalid_argument("huber_loss_param: delta must be above 0");
  }
  double loss(double d) const {
    const double size = std::fabs(d);
    return size <= delta_ ? d * d / 2 : delta_ * (size - double(delta_) / 2);
  }
  float slope(float d) const { return std::clamp(d, -delta_, delta_); }

 private:
  float delta_;
};

}  // namespace

extern const LayerType layer_huber_loss{.name = "HuberLoss",
                                        .min_bottoms = 2,
                                        .max_bottoms = 3,
                                        .create = create_layer<DistanceLoss<Huber>>,
                                        .loss = true};

}  // namespace cafetiere
