// Accuracy: the share of positions whose label is among the top_k scores. Bottoms: scores, labels;
// tops: the accuracy (a scalar) and, if asked, the accuracy of each class.
#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/device/ref/ref_device.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class Accuracy : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::AccuracyParameter& p = param().accuracy_param();
    CFT_ASSIGN(const int axis, s.bottoms[0].axis(p.axis()));
    const int64_t positions = s.bottoms[0].count(0, axis) * s.bottoms[0].count(axis + 1);
    if (s.bottoms[1].count() != positions) {
      return invalid_argument(fmt::format("needs one label for each of the {} positions, not {}",
                                          positions, s.bottoms[1].count()));
    }
    if (p.top_k() < 1 || p.top_k() > s.bottoms[0][axis]) {
      return invalid_argument(fmt::format("top_k {} must be between 1 and the {} classes",
                                          p.top_k(), s.bottoms[0][axis]));
    }
    s.tops[0] = {};
    if (s.tops.size() > 1) s.tops[1] = {s.bottoms[0][axis]};
    return {};
  }

  Status forward(LayerPlan& plan) const override {
    const caffe::AccuracyParameter p = param().accuracy_param();
    const Shape& shape = plan.bottom_shape(0);
    CFT_ASSIGN(const int axis, shape.axis(p.axis()));
    const int64_t outer = shape.count(0, axis), classes = shape[axis];
    const int64_t inner = shape.count(axis + 1);
    std::vector<TensorId> tops{plan.new_top(0)};
    if (plan.tops.size() > 1) tops.push_back(plan.new_top(1));
    ref_step(plan.program, plan.step("forward"), {plan.bottoms[0], plan.bottoms[1]}, tops,
             [=](const auto& in, const auto& out, const RunContext&) {
               std::vector<int64_t> seen(size_t(classes), 0), right(size_t(classes), 0);
               int64_t total = 0, correct = 0;
               for (int64_t i = 0; i < outer * inner; ++i) {
                 const int64_t label = int64_t(in[1][i]);
                 if (p.has_ignore_label() && label == p.ignore_label()) continue;
                 if (label < 0 || label >= classes) continue;
                 const float* scores = in[0] + i / inner * classes * inner + i % inner;
                 const bool hit = among_best(scores, classes, inner, label, p.top_k());
                 ++total, ++seen[size_t(label)];
                 correct += hit, right[size_t(label)] += hit;
               }
               out[0][0] = total ? float(correct) / float(total) : 0.f;
               for (int64_t c = 0; out.size() > 1 && c < classes; ++c) {
                 out[1][c] = seen[size_t(c)] ? float(right[size_t(c)]) / float(seen[size_t(c)]) : 0;
               }
             });
    return {};
  }
  Status backward(LayerPlan&) const override { return {}; }

 private:
  /// Fewer than k other classes score at least as much: ties count against the label.
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

extern const LayerType layer_accuracy{.name = "Accuracy",
                                      .min_bottoms = 2,
                                      .max_bottoms = 2,
                                      .min_tops = 1,
                                      .max_tops = 2,
                                      .create = create_layer<Accuracy>,
                                      .no_label = true};

}  // namespace cafetiere
