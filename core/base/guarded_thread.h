// SPDX-License-Identifier: Apache-2.0
// GuardedThread: a thread for the library's own work inside somebody else's process.
#pragma once

#include <functional>
#include <string_view>
#include <thread>

#include "core/base/status.h"

namespace cafetiere {

/// Takes none of the process's signals but those of its own faults and stack_signal(): the host, a JVM perhaps, has its
/// own ideas about which thread handles them. What its body throws becomes a Status and ends no
/// process. The destructor joins; whoever owns the thread tells it to end before.
class GuardedThread {
 public:
  GuardedThread() = default;
  ~GuardedThread() { join(); }
  GuardedThread(const GuardedThread&) = delete;
  GuardedThread& operator=(const GuardedThread&) = delete;

  /// Runs `body`. What it throws goes to `failed`, on the same thread, for those who wait for its
  /// work. `purpose` names it where it cannot start: kOutOfMemory then, with the limits to look at.
  Status start(std::string_view purpose, std::function<void()> body,
               std::function<void(const Status&)> failed);

  /// Whether start() has been called with success, and join() has not.
  bool started() const { return thread_.joinable(); }
  /// Waits for the end of the body, if it was started.
  void join();

 private:
  std::thread thread_;
};

}  // namespace cafetiere
