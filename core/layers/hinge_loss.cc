// SPDX-License-Identifier: Apache-2.0
// HingeLoss: one against all, the mean over images of sum max(0, 1 - t s)^p, where t is 1 for the
// label's class and -1 for the others, and p is 1 or 2. Bottoms: scores (N, classes..), N labels;
// top: the loss (a scalar).
#include "core/layers/class_loss.h"

namespace cafetiere {
namespace {

class Hinge {
 public:
  explicit Hinge(const caffe::LayerParameter& param)
      : squared_(param.hinge_loss_param().norm() == caffe::HingeLossParameter::L2) {}

  double sum(const ClassScores& s, const float* scores, const float* labels) const {
    double sum = 0;
    for_each_margin(s, scores, labels, [&](int64_t, float, float margin) {
      sum += squared_ ? double(margin) * margin : margin;
    });
    return sum;
  }

  void gradient(const ClassScores& s, const float* scores, const float* labels, float weight,
                float* out) const {
    for_each_margin(s, scores, labels, [&](int64_t i, float sign, float margin) {
      const float slope = squared_ ? 2 * margin : margin > 0 ? 1.f : 0.f;
      out[i] = -sign * slope * weight;
    });
  }

 private:
  /// Calls f(element, t, max(0, 1 - t s)) for all scores.
  template <class F>
  static void for_each_margin(const ClassScores& s, const float* scores, const float* labels,
                              const F& f) {
    for (int64_t n = 0; n < s.outer; ++n) {
      const int64_t label = s.class_of(labels[n]);
      for (int64_t c = 0; c < s.classes; ++c) {
        const float sign = c == label ? 1.f : -1.f;
        f(s.at(n, c), sign, std::max(0.f, 1 - sign * scores[s.at(n, c)]));
      }
    }
  }

  bool squared_;
};

}  // namespace

extern const LayerType layer_hinge_loss{.name = "HingeLoss",
                                        .min_bottoms = 2,
                                        .max_bottoms = 2,
                                        .min_tops = 1,
                                        .max_tops = 1,
                                        .create = create_layer<ClassLoss<Hinge>>,
                                        .loss = true,
                                        .no_label = true};

}  // namespace cafetiere
