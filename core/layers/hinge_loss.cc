// SPDX-License-Identifier: Apache-2.0
// HingeLoss: one-versus-all hinge loss, the mean over images of sum max(0, 1 - t s)^p, where t is 1
// for the label's class and -1 for the others, and p is 1 or 2. Bottoms: scores (N, classes..), N
// labels; top: the loss (a scalar).
#include "core/layers/class_loss.h"

namespace cafetiere {
namespace {

class Hinge {
 public:
  explicit Hinge(const caffe::LayerParameter& param)
      : squared_(param.hinge_loss_param().norm() == caffe::HingeLossParameter::L2) {}

  double loss(const float* scores, int64_t classes, int64_t label) const {
    double sum = 0;
    for (int64_t c = 0; c < classes; ++c) {
      const float lack = margin(scores[c], c == label);
      sum += squared_ ? double(lack) * lack : lack;
    }
    return sum;
  }

  float slope(float score, bool is_label) const {
    const float lack = margin(score, is_label);
    const float size = squared_ ? 2 * lack : lack > 0 ? 1.f : 0.f;
    return is_label ? -size : size;
  }

 private:
  /// max(0, 1 - t s)
  static float margin(float score, bool is_label) {
    return std::max(0.f, is_label ? 1 - score : 1 + score);
  }

  bool squared_;
};

}  // namespace

extern const LayerType layer_hinge_loss{.name = "HingeLoss",
                                        .min_bottoms = 2,
                                        .max_bottoms = 2,
                                        .create = create_layer<ClassLoss<Hinge>>,
                                        .loss = true,
                                        .no_label = true,
                                        .labels = labels_of_rows};

}  // namespace cafetiere
