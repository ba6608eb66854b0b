// SPDX-License-Identifier: Apache-2.0
// MultinomialLogisticLoss: the mean of -log p[label]. Bottoms: probabilities (N, classes..), N
// labels; top: the loss (a scalar). SoftmaxWithLoss computes it from scores and is numerically more
// stable.
#include "core/device/vector_math.h"
#include "core/layers/class_loss.h"

namespace cafetiere {
namespace {

struct LogOfLabel {
  explicit LogOfLabel(const caffe::LayerParameter&) {}

  double loss(const float* scores, int64_t, int64_t label) const {
    return -vec::log(std::max(scores[label], kLeastProbability));
  }

  float slope(float p, bool is_label) const {
    return is_label ? -1 / std::max(p, kLeastProbability) : 0;
  }
};

}  // namespace

extern const LayerType layer_multinomial_logistic_loss{
    .name = "MultinomialLogisticLoss",
    .min_bottoms = 2,
    .max_bottoms = 2,
    .create = create_layer<ClassLoss<LogOfLabel>>,
    .loss = true,
    .no_label = true,
    .labels = labels_of_rows};

}  // namespace cafetiere
