// SPDX-License-Identifier: Apache-2.0
// Where the vectors of one head of one sample are, for both formats of attention.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/device/cpu/attention_rows.h"
#include "core/device/geometry.h"

namespace cafetiere {

/// The offsets of a head's first token in the tensors of queries, keys and values, of outputs, and
/// of logarithms; `pair` is sample * heads + head.
struct AttentionHead {
  int64_t query, key, value, out, log_sum;

  AttentionHead(const AttentionGeometry& g, int64_t pair) {
    const int64_t sample = pair / g.heads, column = pair % g.heads * g.width;
    query = sample * g.tokens * 3 * g.features() + column;
    key = query + g.features();
    value = key + g.features();
    out = sample * g.tokens * g.features() + column;
    log_sum = pair * g.tokens;
  }
};

inline constexpr int64_t kAttentionTile = 64;    ///< queries
inline constexpr int64_t kAttentionBlocks = 64;  ///< maximum; each has its own working memory

inline int64_t attention_tile(const AttentionGeometry& g) {
  return std::min(kAttentionTile, g.tokens);
}
inline int64_t attention_blocks(const AttentionGeometry& g) {
  return std::min(kAttentionBlocks, g.pairs());
}
/// The row of a token's scores; `tokens` may exceed g.tokens.
inline AttentionRow attention_row(const AttentionGeometry& g, int64_t token, int64_t tokens) {
  return {g.causal ? token + 1 : g.tokens, tokens, 1 / std::sqrt(float(g.width))};
}

}  // namespace cafetiere
