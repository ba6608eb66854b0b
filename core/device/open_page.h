// SPDX-License-Identifier: Apache-2.0
// Reading memory past the ends of pages. The hardware's prefetchers have more reads in flight than a
// thread can start, but stop at the end of a page; if its first lines are fetched ahead, they go on.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cafetiere {

inline constexpr int64_t kPageBytes = 4096;

/// Fetches the first lines of a page into the L2 cache. Any address will do, valid or not.
inline void open_page(const void* page) {
  constexpr int kLines = 4, kLine = 64, kSecondLevel = 2;
  for (int i = 0; i < kLines; ++i) {
    __builtin_prefetch(static_cast<const std::byte*>(page) + i * kLine, 0, kSecondLevel);
  }
}

}  // namespace cafetiere
