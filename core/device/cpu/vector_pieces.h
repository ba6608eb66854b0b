// SPDX-License-Identifier: Apache-2.0
// Vectors of any width: the file of each instruction set includes this once, within its target.
#pragma once

#include <cstdint>
#include <type_traits>

namespace cafetiere {
namespace {

/// Calls f(first, vectors, lanes) for pieces of `width` numbers: first four, then two vectors at a
/// time, which share the computation of a window, then single vectors, of which the last may be
/// partial.
template <int64_t kLanes, class F>
inline void for_each_piece(int64_t width, const F& f) {
  using One = std::integral_constant<int64_t, 1>;
  using Two = std::integral_constant<int64_t, 2>;
  using Four = std::integral_constant<int64_t, 4>;
  constexpr std::integral_constant<int64_t, kLanes> kWhole;
  int64_t i = 0;
  for (; i + 4 * kLanes <= width; i += 4 * kLanes) f(i, Four(), kWhole);
  if (i + 2 * kLanes <= width) f(i, Two(), kWhole), i += 2 * kLanes;
  if (i + kLanes <= width) f(i, One(), kWhole), i += kLanes;
  if (i < width) f(i, One(), width - i);
}

}  // namespace
}  // namespace cafetiere
