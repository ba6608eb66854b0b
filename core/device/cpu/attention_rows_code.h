// SPDX-License-Identifier: Apache-2.0
// The passes of attention_rows.h: the file of each instruction set includes this once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/device/cpu/attention_rows.h"
#include "core/device/cpu/fold.h"
#include "core/device/vector_math.h"

namespace cafetiere {
namespace {

float softmax_row(const AttentionRow& row, float* x) {
  const int64_t count = row.seen;
  const float scale = row.scale;
  const auto at = [x](int64_t j) { return x[j]; };
  const float largest = fold(count, x[0], at, [](float a, float b) { return a < b ? b : a; });
  for (int64_t j = 0; j < count; ++j) x[j] = vec::exp(scale * (x[j] - largest));
  const float total = fold(count, 0.F, at, [](float a, float b) { return a + b; });
  for (int64_t j = 0; j < count; ++j) x[j] /= total;
  std::fill(x + count, x + row.tokens, 0.F);
  return scale * largest + vec::log(total);
}

void softmax_row_backward(const AttentionRow& row, float log_sum, float dot, float* weights,
                          float* diffs) {
  const float scale = row.scale;
#pragma GCC ivdep
  for (int64_t j = 0; j < row.seen; ++j) {
    weights[j] = vec::exp(scale * weights[j] - log_sum);
    diffs[j] = weights[j] * (diffs[j] - dot) * scale;
  }
  std::fill(weights + row.seen, weights + row.tokens, 0.F);
  std::fill(diffs + row.seen, diffs + row.tokens, 0.F);
}

}  // namespace
}  // namespace cafetiere
