// SPDX-License-Identifier: Apache-2.0
// A process that is short of what threads need.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>

#include "tests/support/sanitizers.h"

namespace cafetiere {

/// So many do not start after allow_few_threads().
inline constexpr int kTooManyThreads = 64;

/// Leaves the process address space for the stacks of some threads only. Counts of processes would
/// not hold back root, which tests may run as.
inline void allow_few_threads() {
  constexpr rlim_t kStack = 8 << 20;
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit stack{kStack, kStack};
  getrlimit(RLIMIT_STACK, &stack);
  const rlim_t each = stack.rlim_cur == RLIM_INFINITY ? kStack : stack.rlim_cur;
  const rlim_t bytes = rlim_t(pages) * rlim_t(getpagesize()) + each * kTooManyThreads / 4;
  const rlimit limit{bytes, bytes};
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
}

}  // namespace cafetiere
