// SPDX-License-Identifier: Apache-2.0
// Round: converts sums of products to bfloat16, with bias and optional ReLU.
#pragma once

#include <cstdint>

namespace cafetiere::bf16 {

/// Lanes [0, lanes) of sums whose columns are `height` apart: adds `start`, then applies a lower
/// bound `floor`.
struct Rounding {
  int64_t height, lanes;  ///< at most 32
  const float* start;     ///< 32 floats
  float floor;
  /// If given, numbers at the distances of the results: each is added to a rounded sum, which then
  /// gets the lower bound.
  const uint16_t* added = nullptr;
};

/// Rounds like flushed_bfloat16().
class Round {
 public:
  /// Selects the implementation for this processor.
  Round();
  /// Selects an implementation supported by this machine, for comparison.
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
