// SPDX-License-Identifier: Apache-2.0
// The softmax of attention, a row of scores at a time.
#pragma once

#include <cstdint>

namespace cafetiere {

/// A row: `tokens` scores, of which the first `seen` count; the others become 0.
struct AttentionRow {
  int64_t seen, tokens;
  float scale;
};

/// The passes over a row; all implementations give bitwise the same results.
struct AttentionRows {
  /// Converts scores to weights, in place; returns the logarithm of the sum of their exponentials.
  float (*softmax)(const AttentionRow&, float* x);
  /// Recomputes weights from scores, and converts the gradient of the weights to that of the
  /// unscaled scores.
  void (*backward)(const AttentionRow&, float log_sum, float dot, float* weights, float* diffs);
};

/// The implementation for the instruction set in use.
AttentionRows attention_rows();
/// For comparison; the second one requires AVX-512.
AttentionRows plain_attention_rows();
AttentionRows wide_attention_rows();

}  // namespace cafetiere
