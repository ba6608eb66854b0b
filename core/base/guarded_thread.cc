// SPDX-License-Identifier: Apache-2.0
#include "core/base/guarded_thread.h"

#include <fmt/format.h>
#include <signal.h>

#include <system_error>
#include <utility>

#include "core/base/guard.h"

namespace cafetiere {
namespace {

/// All but those that a thread's own instructions raise: where they are blocked, the process ends
/// without the host's report of the fault.
sigset_t signals_of_others() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&signals, fault);
  return signals;
}

}  // namespace

Status GuardedThread::start(std::string_view purpose, std::function<void()> body,
                            std::function<void(const Status&)> failed) {
  const sigset_t blocked = signals_of_others();
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  Status status = guard([&]() -> Status {
    try {
      thread_ = std::thread([body = std::move(body), failed = std::move(failed)] {
        const Status end = guard(body);
        if (!end.ok() && failed) (void)guard([&] { failed(end); });
      });
      return {};
    } catch (const std::system_error& e) {
      return {ErrorCode::kOutOfMemory,
              fmt::format(
                  "cannot start a thread for {}: {}; the limit on processes and threads (ulimit "
                  "-u), the container's (pids.max) or memory is used up: ask for fewer "
                  "threads or raise the limit",
                  purpose, e.code().message())};
    }
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return status;
}

void GuardedThread::join() {
  if (thread_.joinable()) thread_.join();
}

}  // namespace cafetiere
