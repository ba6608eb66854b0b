// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention (Vaswani et al. 2017), one tile of queries at a time, so that the
// matrix of all pairs of tokens is never in memory; the backward pass recomputes it from the
// logarithms of its row sums (Dao et al. 2022).
#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/device/cpu/attention_bf16.h"
#include "core/device/cpu/attention_head.h"
#include "core/device/cpu/brgemm.h"
#include "core/device/cpu/cpu_device.h"
#include "core/device/cpu/fold.h"
#include "core/device/cpu/forms.h"
#include "core/device/row_major.h"
#include "core/device/transpose.h"

namespace cafetiere {
namespace {

/// The attention of one head of one sample at a time.
class Heads {
 public:
  explicit Heads(const AttentionGeometry& g)
      : g_(g), tile_(attention_tile(g)), whole_(g, tile_), last_(g, last_tile()) {}

  /// Floats of working memory for forward() and backward().
  static int64_t scratch(const AttentionGeometry& g) {
    return 2 * (attention_tile(g) + g.width) * g.tokens;
  }

  /// out = softmax(Q K^T / sqrt(width)) V; log_sums[token] keeps the logarithm of the softmax
  /// divisor of its row.
  void forward(int64_t pair, const float* qkv, float* out, float* log_sums, float* scratch) const {
    const AttentionHead h(g_, pair);
    float* keys = scratch;
    float* scores = keys + g_.tokens * g_.width;
    transpose(qkv + h.key, row(), keys);
    for (int64_t first = 0; first < g_.tokens; first += tile_) {
      const Products& p = products(first);
      p.scores(keys, qkv + h.query + first * row(), scores);
      for (int64_t i = 0; i < p.rows; ++i) {
        log_sums[h.log_sum + first + i] = rows_.softmax(row_of(first + i), scores + i * g_.tokens);
      }
      p.weighted(qkv + h.value, scores, out + h.out + first * g_.features());
    }
  }

  /// Computes dqkv from dout; out and log_sums are those of the forward pass.
  void backward(int64_t pair, const float* qkv, const float* out, const float* log_sums,
                const float* dout, float* dqkv, float* scratch) const {
    const AttentionHead h(g_, pair);
    float* keys = scratch;
    float* values = keys + g_.tokens * g_.width;
    float* weights = values + g_.tokens * g_.width;
    float* diffs = weights + tile_ * g_.tokens;
    transpose(qkv + h.key, row(), keys);
    transpose(qkv + h.value, row(), values);
    for (int64_t token = 0; token < g_.tokens; ++token) {
      std::fill_n(dqkv + h.key + token * row(), g_.width, 0.F);
      std::fill_n(dqkv + h.value + token * row(), g_.width, 0.F);
    }
    for (int64_t first = 0; first < g_.tokens; first += tile_) {
      const Products& p = products(first);
      const float* query = qkv + h.query + first * row();
      const float* dy = dout + h.out + first * g_.features();
      p.scores(keys, query, weights);
      p.weight_diffs(values, dy, diffs);
      for (int64_t i = 0; i < p.rows; ++i) {
        const float* dy_row = dy + i * g_.features();
        const float* y_row = out + h.out + (first + i) * g_.features();
        const float dot = fold(
            g_.width, 0.F, [=](int64_t k) { return dy_row[k] * y_row[k]; },
            [](float a, float b) { return a + b; });
        rows_.backward(row_of(first + i), log_sums[h.log_sum + first + i], dot,
                       weights + i * g_.tokens, diffs + i * g_.tokens);
      }
      p.query_diffs(qkv + h.key, diffs, dqkv + h.query + first * row());
      p.value_diffs(dy, weights, dqkv + h.value);
      p.key_diffs(query, diffs, dqkv + h.key);
    }
  }

 private:
  /// The products for a tile of `rows` queries (column-major, see Brgemm).
  struct Products {
    int64_t rows;
    Brgemm scores, weighted, weight_diffs, query_diffs, value_diffs, key_diffs;

    Products(const AttentionGeometry& g, int64_t r)
        : rows(r),
          scores(g.tokens, r, g.width, g.tokens, 3 * g.features(), g.tokens, false),
          weighted(g.width, r, g.tokens, 3 * g.features(), g.tokens, g.features(), false),
          weight_diffs(g.tokens, r, g.width, g.tokens, g.features(), g.tokens, false),
          query_diffs(g.width, r, g.tokens, 3 * g.features(), g.tokens, 3 * g.features(), false),
          value_diffs(g.width, g.tokens, r, g.features(), g.tokens, 3 * g.features(), true,
                      Brgemm::B::kRows),
          key_diffs(g.width, g.tokens, r, 3 * g.features(), g.tokens, 3 * g.features(), true,
                    Brgemm::B::kRows) {}
  };

  int64_t row() const { return 3 * g_.features(); }
  int64_t last_tile() const { return g_.tokens - (g_.tokens - 1) / tile_ * tile_; }
  const Products& products(int64_t first) const {
    return first + tile_ > g_.tokens ? last_ : whole_;
  }

  /// Transposes (tokens, width) to (width, tokens).
  void transpose(const float* in, int64_t ld, float* out) const {
    transpose_tiles(in, g_.tokens, g_.width, ld, out, g_.tokens);
  }

  AttentionRow row_of(int64_t token) const { return attention_row(g_, token, g_.tokens); }

  AttentionGeometry g_;
  int64_t tile_;
  Products whole_, last_;
  AttentionRows rows_ = attention_rows();
};

/// Runs body(head, pair, in, out, scratch) for every head of every sample.
template <class Body>
void attention_step(Program& p, const std::string& name, const AttentionGeometry& g,
                    const std::vector<TensorId>& in, std::vector<TensorId> out, double flops,
                    Body body) {
  const int64_t blocks = attention_blocks(g), floats = Heads::scratch(g);
  out.push_back(p.tensor(name + " scratch", {blocks, floats}));
  row_major_step(
      p, name, "brgemm, tiles of queries", in, out,
      [=](const RowMajor& at) {
        const Heads heads(g);
        return Kernel{int(blocks), [=](int block) {
                        float* scratch = at.out.back() + block * floats;
                        for (int64_t pair = block; pair < g.pairs(); pair += blocks) {
                          body(heads, pair, at.in, at.out, scratch);
                        }
                      }};
      },
      flops);
}

void forward(Program& p, const std::string& name, const AttentionGeometry& g, TensorId qkv,
             TensorId dst, TensorId log_sums) {
  attention_step(p, name, g, {qkv}, {dst, log_sums}, g.flops(),
                 [](const Heads& heads, int64_t pair, const auto& in, const auto& out,
                    float* scratch) { heads.forward(pair, in[0], out[0], out[1], scratch); });
}

void backward(Program& p, const std::string& name, const AttentionGeometry& g, TensorId qkv,
              TensorId dst, TensorId log_sums, TensorId diff_dst, TensorId diff_qkv) {
  attention_step(
      p, name, g, {qkv, dst, log_sums, diff_dst}, {diff_qkv}, 2.5 * g.flops(),
      [](const Heads& heads, int64_t pair, const auto& in, const auto& out, float* scratch) {
        heads.backward(pair, in[0], in[1], in[2], in[3], out[0], scratch);
      });
}

std::string accepts_all(const AttentionGeometry&) { return ""; }

using AttentionForm =
    Form<AttentionGeometry, TensorId /*qkv*/, TensorId /*dst*/, TensorId /*log_sums*/>;
constexpr AttentionForm kBf16Attention{"bfloat16", attention_bf16::declines,
                                       attention_bf16::forward};
constexpr AttentionForm kAttention[] = {{"float32", accepts_all, forward}};

using BackwardForm = Form<AttentionGeometry, TensorId /*qkv*/, TensorId /*dst*/,
                          TensorId /*log_sums*/, TensorId /*diff_dst*/, TensorId /*diff_qkv*/>;
constexpr BackwardForm kBf16Backward{"bfloat16", attention_bf16::declines,
                                     attention_bf16::backward};
constexpr BackwardForm kBackward[] = {{"float32", accepts_all, backward}};

}  // namespace

void CpuDevice::attention(Program& p, const std::string& name, const AttentionGeometry& g,
                          TensorId qkv, TensorId dst, TensorId log_sums) {
  emit_first(form_of(precision_, kBf16Attention), kAttention, p, name, g, qkv, dst, log_sums);
}

void CpuDevice::attention_backward(Program& p, const std::string& name, const AttentionGeometry& g,
                                   TensorId qkv, TensorId dst, TensorId log_sums, TensorId diff_dst,
                                   TensorId diff_qkv) {
  emit_first(form_of(precision_, kBf16Backward), kBackward, p, name, g, qkv, dst, log_sums,
             diff_dst, diff_qkv);
}

}  // namespace cafetiere
