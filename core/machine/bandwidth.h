// SPDX-License-Identifier: Apache-2.0
// Memory as fast as loads and stores get it.
#pragma once

#include <cstdint>

#include "core/machine/crew.h"

namespace cafetiere {

/// GB/s of all threads together. A copy counts what it reads and what it writes.
struct Bandwidth {
  double read = 0, copy = 0;

  double best() const { return read > copy ? read : copy; }
};

/// Reads and copies `bytes` altogether, each thread its own share, again and again for `seconds`.
/// `prefetches`: helps the hardware's prefetchers over the ends of pages, which pays beyond the L2
/// cache.
Bandwidth measure_bandwidth(Crew& crew, int64_t bytes, bool prefetches, double seconds);

}  // namespace cafetiere
