// SPDX-License-Identifier: Apache-2.0
// EuclideanLoss: sum (a - b)^2 / (2 N). Bottoms: a and b of equal size and, optionally, image
// weights; a and b have gradients.
#include "core/layers/distance_loss.h"

namespace cafetiere {
namespace {

struct HalfSquare {
  explicit HalfSquare(const caffe::LayerParameter&) {}
  Status check() const { return {}; }
  double loss(double d) const { return d * d / 2; }
  float slope(float d) const { return d; }
};

}  // namespace

extern const LayerType layer_euclidean_loss{.name = "EuclideanLoss",
                                            .min_bottoms = 2,
                                            .max_bottoms = 3,
                                            .create = create_layer<DistanceLoss<HalfSquare>>,
                                            .loss = true};

}  // namespace cafetiere
