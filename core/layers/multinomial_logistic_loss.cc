// SPDX-License-Identifier: Apache-2.0
// MultinomialLogisticLoss: the mean of -log p[label]. Bottoms: probabilities (N, classes..), N
// labels; top: the loss (a scalar). SoftmaxWithLoss does it from scores, and more stably.
#include <cmath>

#include "core/layers/class_loss.h"

namespace cafetiere {
namespace {

struct LogOfLabel {
  explicit LogOfLabel(const caffe::LayerParameter&) {}

  double sum(const ClassScores& s, const float* scores, const float* labels) const {
    double sum = 0;
    for (int64_t i = 0; i < s.outer; ++i) {
      sum -= std::log(std::max(scores[s.at(i, s.class_of(labels[i]))], kLeastProbability));
    }
    return sum;
  }

  /// -weight / p at the label, zero elsewhere.
  void gradient(const ClassScores& s, const float* scores, const float* labels, float weight,
                float* out) const {
    std::fill_n(out, s.count(), 0.f);
    for (int64_t i = 0; i < s.outer; ++i) {
      const int64_t at = s.at(i, s.class_of(labels[i]));
      out[at] = -weight / std::max(scores[at], kLeastProbability);
    }
  }
};

}  // namespace

extern const LayerType layer_multinomial_logistic_loss{
    .name = "MultinomialLogisticLoss",
    .min_bottoms = 2,
    .max_bottoms = 2,
    .min_tops = 1,
    .max_tops = 1,
    .create = create_layer<ClassLoss<LogOfLabel>>,
    .loss = true,
    .no_label = true};

}  // namespace cafetiere
