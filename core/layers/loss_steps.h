// SPDX-License-Identifier: Apache-2.0
// The steps of a loss that sums over positions: threads sum blocks of positions, then the block
// sums are added in order, so that the result does not depend on the number of threads.
#pragma once

#include <cmath>
#include <vector>

#include "core/device/row_major.h"
#include "core/device/run_error.h"
#include "core/layers/class_scores.h"
#include "core/layers/loss_normalizer.h"

namespace cafetiere {

/// A double as two floats, which hold 48 of its 53 bits.
struct SplitDouble {
  float high, low;

  explicit SplitDouble(double x)
      : high(float(x)), low(std::isfinite(high) ? float(x - double(high)) : 0.F) {}
  static double merged(float high, float low) { return double(high) + double(low); }
};

/// Weights of images, or of their positions, in an optional bottom of a loss. The divisor of the
/// sum ignores them.
struct LossWeights {
  TensorId tensor = kNoTensor;  ///< kNoTensor: all weights are 1
  int64_t positions = 1;        ///< positions per weight

  /// The weights in bottom `index`, if the layer has that bottom.
  static LossWeights of(const LoweringContext& plan, size_t index, int64_t positions) {
    if (plan.bottoms.size() <= index) return {};
    return {plan.bottoms[index],
            positions / std::max<int64_t>(1, plan.bottom_shape(index).count())};
  }
  /// Rejects a bottom that has neither one weight per image nor one per position.
  static Status check(const std::vector<Shape>& bottoms, size_t index, int64_t images,
                      int64_t positions) {
    if (bottoms.size() <= index) return {};
    const int64_t count = bottoms[index].count();
    if (count == images || count == positions) return {};
    return invalid_argument(fmt::format("needs a weight for each of {} rows, but weights are {}",
                                        images, bottoms[index].str()));
  }
};

inline Status no_class(const std::string& layer, float label, int64_t position, int64_t classes) {
  return invalid_argument(fmt::format(
      "layer '{}': label {:g} at position {} of the batch is none of {} classes, 0 to {}; correct "
      "the labels or the number of outputs, or set ignore_label",
      layer, label, position, classes, classes - 1));
}

/// Sets top 0 to the weighted sum of f(in, position) over the counted positions, divided according
/// to `rule`. in[1] holds the labels; where they are some of `classes`, learning from others is an
/// error. Returns a tensor with the divisor, for emit_loss_gradient().
template <class F>
TensorId emit_loss(LoweringContext& plan, const LossNormalizer& rule, std::vector<TensorId> in, F f,
                   const LossWeights& weights = {}, int64_t classes = 0) {
  const int64_t most = plan.train ? classes : 0;
  const size_t w = in.size();
  in.push_back(weights.tensor);
  const Ranges ranges(plan.program, in, rule.outer * rule.inner);
  // Per block: its sum as two floats, and its number of counted positions.
  const TensorId sums = plan.new_tensor("sums", {ranges.blocks(), 3});
  const std::string layer = plan.name;
  row_major_step(plan.program, plan.step("forward"), "ranges", in, {sums}, [=](const RowMajor& at) {
    return Kernel{ranges.blocks(), [=](int block) {
                    double sum = 0;
                    int64_t valid = 0;
                    for (int64_t i = ranges.begin(block); i < ranges.end(block); ++i) {
                      if (!rule.counts(at.in[1], i)) continue;
                      ++valid;
                      if (most > 0 && index_below(at.in[1][i], most) < 0) {
                        at.run->error->report(no_class(layer, at.in[1][i], i, most));
                      }
                      const double loss = f(at.in, i);
                      sum += at.in[w] ? loss * at.in[w][i / weights.positions] : loss;
                    }
                    const SplitDouble split(sum);
                    float* out = at.out[0] + block * 3;
                    out[0] = split.high, out[1] = split.low, out[2] = float(valid);
                  }};
  });
  const TensorId divisor = plan.new_tensor("divisor", {1});
  const int blocks = ranges.blocks();
  serial_step(plan.program, plan.step("sum"), {sums}, {plan.new_top(0), divisor},
              [=](const auto& part, const auto& out, const RunContext&) {
                double sum = 0;
                int64_t valid = 0;
                for (int b = 0; b < blocks; ++b) {
                  const float* of = part[0] + int64_t{b} * 3;
                  sum += SplitDouble::merged(of[0], of[1]);
                  valid += int64_t(of[2]);
                }
                out[1][0] = rule.divisor(valid);
                out[0][0] = float(sum / out[1][0]);
              });
  return divisor;
}

/// Sets `down` to the gradient. For a counted position, f(in, position) returns a function of
/// (class, element), whose values are scaled by weight / divisor and by the position's weight;
/// other positions get 0. in[1] holds the labels; `weight` is the gradient of the loss.
template <class F>
void emit_loss_gradient(LoweringContext& plan, const ClassScores& s, const LossNormalizer& rule,
                        std::vector<TensorId> in, TensorId divisor, TensorId weight, TensorId down,
                        F f, const LossWeights& weights = {}) {
  const size_t at = in.size();
  in.push_back(divisor);
  in.push_back(weight);
  in.push_back(weights.tensor);
  range_step(plan.program, plan.step("backward"), in, {down}, s.outer * s.inner,
             [=](int64_t begin, int64_t end, const auto& from, const auto& out, const RunContext&) {
               const float mean = from[at + 1][0] / from[at][0];
               const float* const w = from[at + 2];
               float* const dx = out[0];
               for (int64_t i = begin; i < end; ++i) {
                 const int64_t first = s.at(i, 0);
                 if (!rule.counts(from[1], i)) {
                   for (int64_t c = 0; c < s.classes; ++c) dx[first + c * s.inner] = 0;
                   continue;
                 }
                 const auto value = f(from, i);
                 const float scale = w ? mean * w[i / weights.positions] : mean;
                 for (int64_t c = 0; c < s.classes; ++c) {
                   const int64_t e = first + c * s.inner;
                   dx[e] = value(c, e) * scale;
                 }
               }
             });
}

}  // namespace cafetiere
