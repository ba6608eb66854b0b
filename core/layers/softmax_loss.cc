// SoftmaxWithLoss: the mean of -log softmax(x)[label]. Bottoms: scores, labels (one a position);
// tops: the loss (a scalar) and, if asked, the probabilities.
#include <fmt/format.h>

#include <algorithm>
#include <cfloat>
#include <cmath>

#include "core/device/ref/ref_device.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

using Loss = caffe::LossParameter;

class SoftmaxWithLoss : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    CFT_ASSIGN(const Shape v, view(s.bottoms[0]));
    if (s.bottoms[1].count() != v[0] * v[2]) {
      return invalid_argument(
          fmt::format("needs one label for each of the {} positions of scores {} but labels are {}",
                      v[0] * v[2], s.bottoms[0].str(), s.bottoms[1].str()));
    }
    s.tops[0] = {};
    if (s.tops.size() > 1) s.tops[1] = s.bottoms[0];
    return {};
  }

  Status forward(LayerPlan& plan) const override {
    CFT_ASSIGN(const Shape v, view(plan.bottom_shape(0)));
    const TensorId scores = plan.program.reshaped(plan.bottoms[0], v);
    const TensorId prob = plan.new_tensor("prob", v);
    plan.device.softmax(plan.program, plan.step("softmax"), scores, prob);
    const Rule rule = this->rule(v);
    ref_step(plan.program, plan.step("forward"), {prob, plan.bottoms[1]}, {plan.new_top(0)},
             [=](const auto& in, const auto& out, const RunContext&) {
               double sum = 0;
               const float divisor = rule.for_each_label(in[1], [&](int64_t i, int64_t label) {
                 sum -= std::log(std::max(in[0][rule.at(i, label)], FLT_MIN));
               });
               out[0][0] = float(sum / divisor);
             });
    plan.saved = {prob};
    if (plan.tops.size() > 1) plan.tops[1] = plan.program.reshaped(prob, plan.top_shapes[1]);
    return {};
  }

  /// (softmax(x) - onehot(label)) * weight / divisor; zero where the label is ignored.
  Status backward(LayerPlan& plan) const override {
    if (!plan.propagate_down[0] || plan.top_diffs[0] == kNoTensor) return {};
    CFT_ASSIGN(const Shape v, view(plan.bottom_shape(0)));
    const Rule rule = this->rule(v);
    const TensorId down = plan.new_tensor("diff", v);
    ref_step(plan.program, plan.step("backward"),
             {plan.saved[0], plan.bottoms[1], plan.top_diffs[0]}, {down},
             [=](const auto& in, const auto& out, const RunContext&) {
               std::fill_n(out[0], rule.outer * rule.channels * rule.inner, 0.f);
               const float divisor = rule.for_each_label(in[1], [&](int64_t i, int64_t label) {
                 for (int64_t c = 0; c < rule.channels; ++c) {
                   out[0][rule.at(i, c)] = in[0][rule.at(i, c)] - (c == label ? 1.f : 0.f);
                 }
               });
               const float scale = in[2][0] / divisor;
               for (int64_t i = 0; i < rule.outer * rule.channels * rule.inner; ++i) {
                 out[0][i] *= scale;
               }
             });
    plan.bottom_diffs[0] = plan.program.reshaped(down, plan.bottom_shape(0));
    return {};
  }

 private:
  /// Which labels count and what their sum is divided by.
  struct Rule {
    int64_t outer, channels, inner;
    bool has_ignore;
    int64_t ignore;
    Loss::NormalizationMode mode;

    int64_t at(int64_t position, int64_t channel) const {
      return (position / inner * channels + channel) * inner + position % inner;
    }
    /// Calls f(position, label) for each label that counts and returns the divisor. A label beyond
    /// the classes counts as class 0: sources check labels before they get here.
    template <class F>
    float for_each_label(const float* labels, const F& f) const {
      int64_t valid = 0;
      for (int64_t i = 0; i < outer * inner; ++i) {
        const int64_t label = int64_t(labels[i]);
        if (has_ignore && label == ignore) continue;
        ++valid;
        f(i, label >= 0 && label < channels ? label : 0);
      }
      const int64_t divisor = mode == Loss::FULL         ? outer * inner
                              : mode == Loss::VALID      ? valid
                              : mode == Loss::BATCH_SIZE ? outer
                                                         : 1;
      return float(std::max<int64_t>(1, divisor));
    }
  };

  Result<Shape> view(const Shape& shape) const {
    CFT_ASSIGN(const int axis, shape.axis(param().softmax_param().axis()));
    return Shape{shape.count(0, axis), shape[axis], shape.count(axis + 1)};
  }
  Rule rule(const Shape& v) const {
    const Loss& p = param().loss_param();
    const auto legacy = p.normalize() ? Loss::VALID : Loss::BATCH_SIZE;
    const auto mode = !p.has_normalization() && p.has_normalize() ? legacy : p.normalization();
    return {v[0], v[1], v[2], p.has_ignore_label(), p.ignore_label(), mode};
  }
};

}  // namespace

extern const LayerType layer_softmax_loss{.name = "SoftmaxWithLoss",
                                          .min_bottoms = 2,
                                          .max_bottoms = 2,
                                          .min_tops = 1,
                                          .max_tops = 2,
                                          .create = create_layer<SoftmaxWithLoss>,
                                          .loss = true,
                                          .no_label = true};

}  // namespace cafetiere
