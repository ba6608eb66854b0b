// SPDX-License-Identifier: Apache-2.0
// The steps of a loss that is a sum over positions: blocks of positions that threads share, then the
// sum of the blocks' sums in order, so that the result is that of a fixed tree.
#pragma once

#include <cmath>
#include <vector>

#include "core/device/row_major.h"
#include "core/layers/class_scores.h"
#include "core/layers/loss_normalizer.h"

namespace cafetiere {

/// A double as two floats: 48 of its 53 bits.
struct SplitDouble {
  float high, low;

  explicit SplitDouble(double x)
      : high(float(x)), low(std::isfinite(high) ? float(x - double(high)) : 0.F) {}
  static double merged(float high, float low) { return double(high) + double(low); }
};

/// The weights of images, or of their positions, as a further bottom of a loss. What the sum is divided
/// by knows nothing of them.
struct LossWeights {
  TensorId tensor = kNoTensor;  ///< kNoTensor: all weigh 1
  int64_t positions = 1;        ///< that share a weight

  /// Of bottom `index`, if the layer has so many.
  static LossWeights of(const LoweringContext& plan, size_t index, int64_t positions) {
    if (plan.bottoms.size() <= index) return {};
    return {plan.bottoms[index],
            positions / std::max<int64_t>(1, plan.bottom_shape(index).count())};
  }
  /// Refuses a bottom that has a weight neither for each image nor for each of their positions.
  static Status check(const std::vector<Shape>& bottoms, size_t index, int64_t images,
                      int64_t positions) {
    if (bottoms.size() <= index) return {};
    const int64_t count = bottoms[index].count();
    if (count == images || count == positions) return {};
    return invalid_argument(fmt::format("needs a weight for each of {} rows, but weights are {}",
                                        images, bottoms[index].str()));
  }
};

/// Sets top 0 to the sum of f(in, position) over the positions that count, each times its weight, divided
/// as `rule` says. in[1] holds the labels. Returns a tensor with the divisor, which the gradient takes.
template <class F>
TensorId emit_loss(LoweringContext& plan, const LossNormalizer& rule, std::vector<TensorId> in, F f,
                   const LossWeights& weights = {}) {
  const size_t w = in.size();
  in.push_back(weights.tensor);
  const Ranges ranges(plan.program, in, rule.outer * rule.inner);
  // Of each block: its sum in two floats, and how many of its positions count.
  const TensorId sums = plan.new_tensor("sums", {ranges.blocks(), 3});
  row_major_step(plan.program, plan.step("forward"), "ranges", in, {sums}, [=](const RowMajor& at) {
    return Kernel{ranges.blocks(), [=](int block) {
                    double sum = 0;
                    int64_t valid = 0;
                    for (int64_t i = ranges.begin(block); i < ranges.end(block); ++i) {
                      if (!rule.counts(at.in[1], i)) continue;
                      ++valid;
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

/// Sets `down` to the gradient: for a position that counts, f(in, position) gives a function of
/// (class, element) whose values are scaled by weight / divisor and by the position's own weight; the
/// others get 0. in[1] holds the labels; `weight` is the gradient of the loss.
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
