// SPDX-License-Identifier: Apache-2.0
#include "core/base/guarded_thread.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <string>
#include <system_error>
#include <utility>

#include "core/base/float_mode.h"
#include "core/base/guard.h"
#include "core/base/thread_stacks.h"

namespace cafetiere {
namespace {

constexpr size_t kMostName = 15;  // of a thread, for the kernel

/// All but those that a thread's own instructions raise, without which the process ends without the
/// host's report of the fault, and the one that asks for its stack.
sigset_t signals_of_others() {
  sigset_t signals;
  sigfillset(&signals);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP}) sigdelset(&signals, fault);
  sigdelset(&signals, stack_signal());
  return signals;
}

/// What a debugger shows of it, without the article.
std::string name_for(std::string_view purpose) {
  if (purpose.starts_with("the ")) purpose.remove_prefix(4);
  return (kThreadPrefix + std::string(purpose)).substr(0, kMostName);
}

}  // namespace

Status GuardedThread::start(std::string_view purpose, std::function<void()> body,
                            std::function<void(const Status&)> failed) {
  const sigset_t blocked = signals_of_others();
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  Status status = guard([&]() -> Status {
    try {
      const std::string name = name_for(purpose);
      thread_ = std::thread([name, body = std::move(body), failed = std::move(failed)] {
        pthread_setname_np(pthread_self(), name.c_str());
        const FloatMode mode(Denormals::kKept);
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
