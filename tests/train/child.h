// SPDX-License-Identifier: Apache-2.0
// Work in a process of its own, to measure the memory that it takes.
#pragma once

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>

#include "core/base/status.h"
#include "tests/support/sanitizers.h"

namespace cafetiere {

inline int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t pages = 0;
  file >> pages >> pages;
  return pages * ::sysconf(_SC_PAGESIZE);
}

/// By how many bytes at most a child process grows in `work`, beyond what `first` has left: code and
/// tables are there then. A failure of either is one of the test.
inline int64_t growth_in_child(const std::function<Status()>& first,
                               const std::function<Status()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) return 0;
  const pid_t child = ::fork();
  if (child == 0) {
    Status status = first();
    const int64_t before = resident_bytes();
    if (status.ok()) status = work();
    if (!status.ok()) std::fprintf(stderr, "%s\n", status.message().c_str());
    rusage usage{};
    ::getrusage(RUSAGE_SELF, &usage);
    const int64_t grown = usage.ru_maxrss * 1024 - before;
    const bool sent = ::write(ends[1], &grown, sizeof grown) == sizeof grown;
    ::_exit(status.ok() && sent ? 0 : 1);
  }
  ::close(ends[1]);
  int64_t grown = 0;
  const bool received = ::read(ends[0], &grown, sizeof grown) == sizeof grown;
  ::close(ends[0]);
  int exit = 0;
  ::waitpid(child, &exit, 0);
  EXPECT_TRUE(received && exit == 0);
  return grown;
}

}  // namespace cafetiere
