// SPDX-License-Identifier: Apache-2.0
// fold: a reduction in sixteen lanes, so that it vectorizes with a fixed order.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cafetiere {

/// Combines `start` and term(i) for all i < count with `join`: in 16 running values, then those in
/// order. `start` is joined more than once, which must not matter: 0 to a sum, any term to a maximum.
template <class T, class Term, class Join>
T fold(int64_t count, T start, const Term& term, const Join& join) {
  std::array<T, 16> lanes;
  if (count < int64_t(lanes.size())) {  // the same: a lane has one term or none
    for (int64_t i = 0; i < count; ++i) start = join(start, term(i));
    return start;
  }
  lanes.fill(start);
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) {
    for (int64_t l = 0; l < 16; ++l) lanes[size_t(l)] = join(lanes[size_t(l)], term(i + l));
  }
  for (int64_t l = 0; i < count; ++i, ++l) lanes[size_t(l)] = join(lanes[size_t(l)], term(i));
  for (T lane : lanes) start = join(start, lane);
  return start;
}

}  // namespace cafetiere
