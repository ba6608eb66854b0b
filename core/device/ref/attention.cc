// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention, directly from the definition.
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/elementary.h"
#include "core/device/ref/ref_device.h"

namespace cafetiere {
namespace {

/// The vectors of one head of one sample, at a fixed distance per token.
struct HeadRows {
  int64_t tokens, width, qkv_row, row, qkv, out;
  bool causal;
  double scale;

  HeadRows(const AttentionGeometry& g, int64_t pair)
      : tokens(g.tokens),
        width(g.width),
        qkv_row(3 * g.features()),
        row(g.features()),
        qkv(pair / g.heads * g.tokens * qkv_row + pair % g.heads * g.width),
        out(pair / g.heads * g.tokens * row + pair % g.heads * g.width),
        causal(g.causal),
        scale(1 / std::sqrt(double(g.width))) {}

  int64_t query(int64_t t) const { return qkv + t * qkv_row; }
  int64_t key(int64_t t) const { return query(t) + row; }
  int64_t value(int64_t t) const { return query(t) + 2 * row; }
  int64_t output(int64_t t) const { return out + t * row; }
  int64_t seen(int64_t t) const { return causal ? t + 1 : tokens; }

  double dot(const float* a, const float* b) const {
    double sum = 0;
    for (int64_t k = 0; k < width; ++k) sum += double(a[k]) * b[k];
    return sum;
  }
  /// to += factor * from
  void add(double factor, const float* from, float* to) const {
    for (int64_t k = 0; k < width; ++k) to[k] = float(to[k] + factor * from[k]);
  }
};

}  // namespace

void RefDevice::attention(Program& p, const std::string& name, const AttentionGeometry& g,
                          TensorId qkv, TensorId dst, TensorId log_sums) {
  ref_step(p, name, {qkv}, {dst, log_sums},
           [=](const auto& in, const auto& out, const RunContext&) {
             std::vector<double> scores(size_t(g.tokens));
             for (int64_t pair = 0; pair < g.pairs(); ++pair) {
               const HeadRows h(g, pair);
               for (int64_t t = 0; t < h.tokens; ++t) {
                 const auto seen = size_t(h.seen(t));
                 for (size_t j = 0; j < seen; ++j) {
                   scores[j] = h.scale * h.dot(in[0] + h.query(t), in[0] + h.key(int64_t(j)));
                 }
                 const double largest = *std::max_element(scores.begin(), scores.begin() + seen);
                 double sum = 0;
                 for (size_t j = 0; j < seen; ++j) sum += elementary::exp(scores[j] - largest);
                 const double log_sum = largest + elementary::log(sum);
                 float* y = out[0] + h.output(t);
                 std::fill_n(y, h.width, 0.F);
                 for (size_t j = 0; j < seen; ++j) {
                   h.add(elementary::exp(scores[j] - log_sum), in[0] + h.value(int64_t(j)), y);
                 }
                 out[1][pair * h.tokens + t] = float(log_sum);
               }
             }
           });
}

void RefDevice::attention_backward(Program& p, const std::string& name, const AttentionGeometry& g,
                                   TensorId qkv, TensorId dst, TensorId log_sums, TensorId diff_dst,
                                   TensorId diff_qkv) {
  ref_step(p, name, {qkv, dst, log_sums, diff_dst}, {diff_qkv},
           [=](const auto& in, const auto& out, const RunContext&) {
             const float *x = in[0], *y = in[1], *dy = in[3];
             float* dx = out[0];
             std::fill_n(dx, 3 * g.n * g.tokens * g.features(), 0.F);
             for (int64_t pair = 0; pair < g.pairs(); ++pair) {
               const HeadRows h(g, pair);
               for (int64_t t = 0; t < h.tokens; ++t) {
                 const float* dy_row = dy + h.output(t);
                 const double own = h.dot(dy_row, y + h.output(t));
                 for (int64_t j = 0; j < h.seen(t); ++j) {
                   const double score = h.scale * h.dot(x + h.query(t), x + h.key(j));
                   const double weight = elementary::exp(score - in[2][pair * h.tokens + t]);
                   const double diff = h.scale * weight * (h.dot(dy_row, x + h.value(j)) - own);
                   h.add(weight, dy_row, dx + h.value(j));
                   h.add(diff, x + h.key(j), dx + h.query(t));
                   h.add(diff, x + h.query(t), dx + h.key(j));
                 }
               }
             }
           });
}

}  // namespace cafetiere
