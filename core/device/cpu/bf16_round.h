// SPDX-License-Identifier: Apache-2.0
// Round: sums of products, with a bias and cut at 0, as bfloat16.
#pragma once

#include <cstdint>

namespace cafetiere::bf16 {

/// Lanes [0, lanes) of sums that are `height` apart, plus `start`, but at least `floor`.
struct Rounding {
  int64_t height, lanes;  ///< at most 32
  const float* start;     ///< 32 of them
  float floor;
  bool streams = false;  ///< past the caches, as nobody reads it soon
};

/// Makes what this thread has streamed visible to others before what it stores next.
void end_streams();

/// Rounds as flushed_bfloat16().
class Round {
 public:
  /// By what this processor has.
  Round();
  /// For one that this machine has, for comparisons.
  explicit Round(bool by_instruction);

  /// Writes `count` pixels, `distance` numbers apart.
  void operator()(const Rounding& how, const float* sums, int64_t count, uint16_t* to,
                  int64_t distance) const {
    run_(how, sums, count, to, distance);
  }

 private:
  void (*run_)(const Rounding&, const float* sums, int64_t count, uint16_t* to, int64_t distance);
};

}  // namespace cafetiere::bf16
