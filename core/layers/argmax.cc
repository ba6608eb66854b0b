// SPDX-License-Identifier: Apache-2.0
// ArgMax: the indices of the top_k values along `axis`, or without an axis of all axes after the
// batch axis, largest value first. Among equal values the larger index comes first. out_max_val
// adds the values as a second row (without an axis) or returns them instead (with one). No
// gradient.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "core/device/row_major.h"
#include "core/graph/layer.h"

namespace cafetiere {
namespace {

class ArgMax : public Layer {
 public:
  using Layer::Layer;

  Status shape(LayerShapes& s) const override {
    const caffe::ArgMaxParameter& p = param().argmax_param();
    const Shape& bottom = s.bottoms[0];
    CFT_ASSIGN(const Choice choice, this->choice(bottom));
    if (choice.k < 1 || choice.k > choice.count) {
      return invalid_argument(fmt::format(
          "top_k {} must be between 1 and the {} values to choose from", p.top_k(), choice.count));
    }
    if (p.has_axis()) {
      s.tops[0] = bottom;
      CFT_ASSIGN(const int axis, bottom.axis(p.axis()));
      s.tops[0][axis] = choice.k;
      return {};
    }
    std::vector<int64_t> dims(size_t(std::max(3, bottom.axes())), 1);
    dims[0] = bottom[0], dims[1] = p.out_max_val() ? 2 : 1, dims[2] = choice.k;
    s.tops[0] = Shape(std::move(dims));
    return {};
  }

  Status forward(LoweringContext& plan) const override {
    CFT_ASSIGN(const Choice c, choice(plan.bottom_shape(0)));
    const bool values = param().argmax_param().out_max_val();
    const bool both = values && !param().argmax_param().has_axis();
    range_step(plan.program, plan.step("forward"), {plan.bottoms[0]}, {plan.new_top(0)},
               c.outer * c.inner,
               [=](int64_t begin, int64_t end, const auto& in, const auto& out, const RunContext&) {
                 std::vector<Ranked> ranked(size_t(c.count));
                 for (int64_t i = begin; i < end; ++i) {
                   const int64_t o = i / c.inner, s = i % c.inner;
                   rank(in[0] + o * c.count * c.inner + s, c, ranked);
                   float* y = out[0] + o * (both ? 2 : 1) * c.k * c.inner + s;
                   for (int64_t j = 0; j < c.k; ++j) {
                     const auto [value, index] = ranked[size_t(j)];
                     y[j * c.inner] = values && !both ? value : float(index);
                     if (both) y[c.k + j] = value;
                   }
                 }
               });
    return {};
  }

  Status backward(LoweringContext& plan) const override {
    return plan.propagate_down[0] ? Layer::backward(plan) : Status();
  }

 private:
  using Ranked = std::pair<float, int64_t>;  ///< value, index

  /// The k largest of `count` values, `inner` apart, for each of outer * inner positions.
  struct Choice {
    int64_t outer, count, inner, k;
  };

  Result<Choice> choice(const Shape& bottom) const {
    const caffe::ArgMaxParameter& p = param().argmax_param();
    CFT_ASSIGN(const int axis, bottom.axis(p.has_axis() ? p.axis() : 0));
    if (!p.has_axis()) return Choice{bottom[0], bottom.count(1), 1, p.top_k()};
    return Choice{bottom.count(0, axis), bottom[axis], bottom.count(axis + 1), p.top_k()};
  }

  /// Sorts so that the k largest values come first, in order. NaN counts as the smallest.
  static void rank(const float* x, const Choice& c, std::vector<Ranked>& ranked) {
    for (int64_t j = 0; j < c.count; ++j) {
      const float value = x[j * c.inner];
      ranked[size_t(j)] = {std::isnan(value) ? -std::numeric_limits<float>::infinity() : value, j};
    }
    std::partial_sort(ranked.begin(), ranked.begin() + c.k, ranked.end(), std::greater<>());
  }
};

}  // namespace

extern const LayerType layer_argmax{
    .name = "ArgMax",
    .create = create_layer<ArgMax>,
    .rows_apart = [](const caffe::LayerParameter& param, const RowPath& rows) {
      const caffe::ArgMaxParameter& p = param.argmax_param();
      return p.has_axis() ? !rows.along(p.axis()) : rows.bottom_axis < 1;
    }};

}  // namespace cafetiere
