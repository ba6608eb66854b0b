// SPDX-License-Identifier: Apache-2.0
// EuclideanLoss: sum (a - b)^2 / (2 N). Two bottoms of one size, and weights of the images if there are
// any; the gradient reaches both.
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
