// SPDX-License-Identifier: Apache-2.0
// A thread for the library's own work inside somebody else's process.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace cafetiere {

/// A thread that takes none of the process's signals: the host, a JVM perhaps, has its own ideas
/// about which thread handles them.
template <class F>
std::thread quiet_thread(F body) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::thread thread(std::move(body));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread;
}

}  // namespace cafetiere
