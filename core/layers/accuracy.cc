// SPDX-License-Identifier: Apache-2.0
// Accuracy: the fraction of positions whose label is among the top_k scores. Bottoms: scores,
// labels; tops: the accuracy (a scalar) and, optionally, the accuracy of each class.
#include <vector>

#include "core/device/row_major.h"
#include "core/layers/class_scores.h"

namespace cafetiere {
namespace {

class Accuracy : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::AccuracyParameter& p = param().accuracy_param();
    CFT_ASSIGN(const ClassScores scores, ClassScores::along(s.bottoms[0], p.axis(), s.bottoms[1]));
    if (p.top_k() < 1 || p.top_k() > scores.classes) {
      return invalid_argument(
          fmt::format("top_k {} must be between 1 and the {} classes", p.top_k(), scores.classes));
    }
    s.tops[0] = {};
    if (s.tops.size() > 1) s.tops[1] = {scores.classes};
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const caffe::AccuracyParameter p = param().accuracy_param();
    CFT_ASSIGN(const ClassScores s,
               ClassScores::along(plan.bottom_shape(0), p.axis(), plan.bottom_shape(1)));
    std::vector<TensorId> tops{plan.new_top(0)};
    if (plan.tops.size() > 1) tops.push_back(plan.new_top(1));
    serial_step(plan.program, plan.step("forward"), {plan.bottoms[0], plan.bottoms[1]}, tops,
                [=](const auto& in, const auto& out, const RunContext&) {
                  std::vector<int64_t> seen(size_t(s.classes), 0), right(size_t(s.classes), 0);
                  int64_t total = 0, correct = 0;
                  for (int64_t i = 0; i < s.outer * s.inner; ++i) {
                    const int64_t label = index_below(in[1][i], s.classes);
                    if (label < 0 || (p.has_ignore_label() && label == p.ignore_label())) continue;
                    const float* scores = in[0] + s.at(i, 0);
                    const bool hit = among_best(scores, s.classes, s.inner, label, p.top_k());
                    ++total, ++seen[size_t(label)];
                    correct += hit, right[size_t(label)] += hit;
                  }
                  out[0][0] = total ? float(correct) / float(total) : 0.f;
                  for (int64_t c = 0; out.size() > 1 && c < s.classes; ++c) {
                    out[1][c] =
                        seen[size_t(c)] ? float(right[size_t(c)]) / float(seen[size_t(c)]) : 0;
                  }
                });
    return {};
  }
  Status backward(LoweringContext&) const override { return {}; }

 private:
  /// True if fewer than k other classes score at least as much: ties count against the label.
  static bool among_best(const float* scores, int64_t classes, int64_t stride, int64_t label,
                         uint32_t k) {
    int64_t better = 0;
    for (int64_t c = 0; c < classes; ++c) {
      better += c != label && scores[c * stride] >= scores[label * stride];
    }
    return better < int64_t(k);
  }
};

}  // namespace

extern const LayerType layer_accuracy{
    .name = "Accuracy",
    .min_bottoms = 2,
    .max_bottoms = 2,
    .max_tops = 2,
    .create = create_layer<Accuracy>,
    .no_label = true,
    .score = true,
    .labels = [](const caffe::LayerParameter& param, const Shape& scores) {
      return labels_along(scores, param.accuracy_param().axis(), param.accuracy_param());
    }};

}  // namespace cafetiere
