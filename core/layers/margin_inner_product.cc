// SPDX-License-Identifier: Apache-2.0
// MarginInnerProduct (SphereFace, Liu et al. 2017): output j is |x| cos(angle_j), where angle_j is
// the angle between x and w_j. For the label it is (lambda |x| cos(angle) + |x| psi(angle)) / (1 +
// lambda); psi extends cos(m angle) to a decreasing function. lambda decreases with the iterations.
// Bottoms: features (M, K..), labels (M); tops: (M, num_output), lambda. Blob: w.
//
// The gradients are those of the fork. In the gradient of x, the two coefficients of the label's
// term are scaled to unit length; the gradient of w is that of the plain inner product. The fork
// normalises the rows of the blob to unit length. Here they keep their lengths, and their gradients
// are multiplied by these, so that the directions change as in the fork.
#include <fmt/format.h>

#include <cmath>

#include "core/base/elementary.h"
#include "core/device/row_major.h"
#include "core/layers/class_scores.h"
#include "core/layers/linear.h"

namespace cafetiere {
namespace {

using MarginParam = caffe::MarginInnerProductParameter;

/// psi(angle) = (-1)^k cos(m angle) - 2 k for angles in [k pi / m, (k + 1) pi / m], as a function
/// of the cosine.
struct Margin {
  int m;

  double sign(double cosine) const { return k(cosine) % 2 == 0 ? 1 : -1; }
  double value(double c) const { return sign(c) * multiple(c) - 2 * k(c); }
  /// The derivative with respect to the cosine.
  double slope(double c) const {
    switch (m) {
      case 1:
        return 1;
      case 2:
        return sign(c) * 4 * c;
      case 3:
        return sign(c) * (12 * c * c - 3);
      default:
        return sign(c) * (32 * c * c * c - 16 * c);
    }
  }

 private:
  double multiple(double c) const {
    switch (m) {
      case 1:
        return c;
      case 2:
        return 2 * c * c - 1;
      case 3:
        return (4 * c * c - 3) * c;
      default:
        return 8 * c * c * (c * c - 1) + 1;
    }
  }
  int k(double c) const {
    constexpr double kHalf = 0.70710678118654752;  // cos(pi / 4)
    switch (m) {
      case 1:
        return 0;
      case 2:
        return c < 0;
      case 3:
        return (c < 0.5) + (c < -0.5);
      default:
        return (c < kHalf) + (c < 0) + (c < -kHalf);
    }
  }
};

/// The schedule of lambda.
struct Weight {
  double base, gamma, power, least;
  int64_t first;

  explicit Weight(const MarginParam& p)
      : base(p.base()),
        gamma(p.gamma()),
        power(p.power()),
        least(p.lambda_min()),
        first(p.iteration()) {}
  double at(const RunContext& run) const {
    const auto iteration = double(first + run.sub_step + 1);
    return std::max(least, base * elementary::pow(1 + gamma * iteration, -power));
  }
};

/// The L2 norms of rows, bounded below to avoid division by 0.
TensorId lengths(LoweringContext& plan, const char* what, TensorId rows, int64_t count,
                 int64_t size) {
  const TensorId norms = plan.new_tensor(what, {count});
  range_step(
      plan.program, plan.step(what), {rows}, {norms}, count,
      [size](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
        for (int64_t i = begin; i < end; ++i) {
          double sum = 0;
          for (int64_t k = i * size; k < (i + 1) * size; ++k) {
            sum += double(in[0][k]) * in[0][k];
          }
          out[0][i] = std::max(1e-12F, float(std::sqrt(sum)));
        }
      });
  return norms;
}

class MarginInnerProduct : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    if (fields().num_output() == 0) return invalid_argument("num_output must be above 0");
    CFT_ASSIGN(const int axis, s.bottoms[0].axis(fields().axis()));
    const int64_t rows = s.bottoms[0].count(0, axis), outputs = fields().num_output();
    if (s.bottoms[1].count() != rows) {
      return invalid_argument(fmt::format("needs one label for each of {} rows, but labels are {}",
                                          rows, s.bottoms[1].str()));
    }
    std::vector<int64_t> dims(s.bottoms[0].dims().begin(), s.bottoms[0].dims().begin() + axis);
    dims.push_back(outputs);
    s.tops[0] = Shape(std::move(dims));
    if (s.tops.size() > 1) s.tops[1] = Shape{1};
    s.params.push_back({Shape{outputs, s.bottoms[0].count(axis)}, fields().weight_filler()});
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    const InnerProductGeometry g = geometry(plan);
    const TensorId of_x = lengths(plan, "lengths", plan.bottoms[0], g.n, g.k);
    const TensorId of_w = lengths(plan, "weight lengths", plan.params[0], g.outputs, g.k);
    const TensorId unit = plan.new_tensor("unit weights", {g.outputs, g.k});
    range_step(plan.program, plan.step("unit weights"), {plan.params[0], of_w}, {unit}, g.outputs,
               [g](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t i = begin * g.k; i < end * g.k; ++i)
                   out[0][i] = in[0][i] / in[1][i / g.k];
               });
    const TensorId plain = Linear{g, unit}.forward(plan, "plain", plan.bottoms[0]);
    const TensorId top = plan.new_top(0);
    range_step(
        plan.program, plan.step("margin"), {plain, plan.bottoms[1], of_x}, {top}, g.n,
        [g, margin = margin(), weight = Weight(fields())](
            int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext& run) {
          const double lambda = weight.at(run);
          for (int64_t i = begin; i < end; ++i) {
            std::copy_n(in[0] + i * g.outputs, g.outputs, out[0] + i * g.outputs);
            const int64_t label = index_below(in[1][i], g.outputs);
            if (label < 0) continue;
            const double length = in[2][i], product = in[0][i * g.outputs + label];
            const double psi = length * margin.value(cosine(product, length));
            out[0][i * g.outputs + label] = float((lambda * product + psi) / (1 + lambda));
          }
        });
    if (plan.tops.size() > 1) {
      serial_step(plan.program, plan.step("lambda"), {}, {plan.new_top(1)},
                  [weight = Weight(fields())](const auto&, const auto& out, const RunContext& run) {
                    out[0][0] = float(weight.at(run));
                  });
    }
    plan.saved = {plain, of_x, of_w, unit};
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    const InnerProductGeometry g = geometry(plan);
    if (plan.param_diffs[0].tensor != kNoTensor) turn_weights(plan, g);
    if (!plan.propagate_down[0]) return {};
    // The label's gradient as coefficients of its row of w and of x.
    const TensorId of_w = plan.new_tensor("shares of w", {g.n, g.outputs});
    const TensorId of_x = plan.new_tensor("shares of x", {g.n});
    range_step(
        plan.program, plan.step("shares"),
        {plan.top_diffs[0], plan.saved[0], plan.bottoms[1], plan.saved[1]}, {of_w, of_x}, g.n,
        [g, margin = margin(), weight = Weight(fields())](
            int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext& run) {
          const double lambda = weight.at(run);
          for (int64_t i = begin; i < end; ++i) {
            const int64_t first = i * g.outputs;
            std::copy_n(in[0] + first, g.outputs, out[0] + first);
            out[1][i] = 0;
            const int64_t label = index_below(in[2][i], g.outputs);
            if (label < 0 || margin.m == 1) continue;
            const double length = in[3][i], c = cosine(in[1][first + label], length);
            double w = margin.slope(c), x = (margin.value(c) - c * w) / length;
            const double size = std::sqrt(w * w + x * x);
            w /= size, x /= size;
            const double down = double(in[0][first + label]) / (1 + lambda);
            out[0][first + label] = float(down * (lambda + w));
            out[1][i] = float(down * x);
          }
        });
    const TensorId through_w = Linear{g, plan.saved[3]}.backward(plan, "through w", of_w);
    range_step(plan.program, plan.step("backward"), {through_w, of_x, plan.bottoms[0]},
               {plan.new_bottom_diff(0)}, g.n,
               [g](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 for (int64_t e = begin * g.k; e < end * g.k; ++e) {
                   out[0][e] = in[0][e] + in[1][e / g.k] * in[2][e];
                 }
               });
    return {};
  }

 private:
  const MarginParam& fields() const { return param().margin_inner_product_param(); }
  Margin margin() const { return {int(fields().type()) + 1}; }

  static double cosine(double product, double length) {
    return std::clamp(product / length, -1., 1.);
  }

  InnerProductGeometry geometry(const LoweringContext& plan) const {
    const int64_t rows = plan.bottom_shape(1).count();
    const Shape& weights = plan.program.shape(plan.params[0]);
    return {rows, weights.count() / int64_t(fields().num_output()), int64_t(fields().num_output()),
            false};
  }

  static void turn_weights(LoweringContext& plan, const InnerProductGeometry& g) {
    const TensorId product = plan.new_tensor("weight product", {g.outputs, g.k});
    Linear{g}.gradients(plan, "weight product", plan.bottoms[0], plan.top_diffs[0],
                        Gradient::plain(product));
    const Gradient to = plan.param_diffs[0];
    range_step(
        plan.program, plan.step("weight gradient"), {product, plan.saved[2]}, {to.tensor},
        g.outputs,
        [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext& run) {
          for (int64_t i = begin * g.k; i < end * g.k; ++i) {
            put(out[0] + i, in[0][i] * in[1][i / g.k], to.adds(run));
          }
        });
  }
};

}  // namespace

extern const LayerType layer_margin_inner_product{
    .name = "MarginInnerProduct",
    .min_bottoms = 2,
    .max_bottoms = 2,
    .max_tops = 2,
    .create = create_layer<MarginInnerProduct>,
    .no_label = true,
    .labels = [](const caffe::LayerParameter& param, const Shape&) {
      return LabelRange{param.margin_inner_product_param().num_output(), {}};
    }};

}  // namespace cafetiere
