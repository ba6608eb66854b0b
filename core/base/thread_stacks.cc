// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_stacks.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace cafetiere {
namespace {

constexpr size_t kMostFrames = 40;
constexpr auto kPatience = std::chrono::milliseconds(200);
constexpr auto kLook = std::chrono::microseconds(200);

/// Where a thread writes its own stack.
struct Capture {
  std::array<uintptr_t, kMostFrames> frames;
  size_t count = 0;
  std::atomic<bool> done{false};
};

_Unwind_Reason_Code add_frame(_Unwind_Context* context, void* into) {
  Capture& capture = *static_cast<Capture*>(into);
  const uintptr_t at = _Unwind_GetIP(context);
  if (at == 0 || capture.count == capture.frames.size()) return _URC_END_OF_STACK;
  capture.frames[capture.count++] = at;
  return _URC_NO_REASON;
}

/// On the thread that was asked. Takes no memory and no lock of ours.
void answer(int, siginfo_t* info, void*) {
  Capture* capture = static_cast<Capture*>(info->si_value.sival_ptr);
  if (info->si_code != SI_QUEUE || !capture) return;
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(capture);  // it does not know that a signal comes after its sender's writes
#endif
  _Unwind_Backtrace(add_frame, capture);
  capture->done.store(true, std::memory_order_release);
}

/// Asks one thread; false if it is gone.
bool ask(int thread, Capture* capture) {
  siginfo_t info{};
  info.si_signo = stack_signal();
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_ptr = capture;
#ifdef __SANITIZE_THREAD__
  __tsan_release(capture);
#endif
  return syscall(SYS_rt_tgsigqueueinfo, getpid(), thread, stack_signal(), &info) == 0;
}

std::string frame_text(uintptr_t at) {
  Dl_info where{};
  if (!dladdr(reinterpret_cast<void*>(at), &where) || !where.dli_fname) {
    return fmt::format("    {:#x}\n", at);
  }
  const std::string file = std::filesystem::path(where.dli_fname).filename();
  const uintptr_t offset = at - reinterpret_cast<uintptr_t>(where.dli_fbase);
  if (!where.dli_sname) return fmt::format("    {}+{:#x}\n", file, offset);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(
      abi::__cxa_demangle(where.dli_sname, nullptr, nullptr, &status), std::free);
  return fmt::format("    {}+{:#x} {}\n", file, offset, name ? name.get() : where.dli_sname);
}

std::string name_of(int thread) {
  std::ifstream file(fmt::format("/proc/self/task/{}/comm", thread));
  std::string name;
  std::getline(file, name);
  return name;
}

/// The engine's threads and the others that are still there, without the one that asks.
std::vector<int> threads_of(const std::vector<int>& others) {
  std::vector<int> threads;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task", ignored)) {
    const std::string text = entry.path().filename();
    int thread = 0;
    std::from_chars(text.data(), text.data() + text.size(), thread);
    if (thread == this_thread()) continue;
    if (std::ranges::count(others, thread) || name_of(thread).starts_with(kThreadPrefix)) {
      threads.push_back(thread);
    }
  }
  return threads;
}

/// A thread that has not answered may do so later: its capture is left to it.
std::string stack_of(int thread) {
  auto capture = std::make_unique<Capture>();
  std::string text = fmt::format("  thread {} {}\n", thread, name_of(thread));
  if (!ask(thread, capture.get())) return text + "    has ended\n";
  const auto begin = std::chrono::steady_clock::now();
  while (!capture->done.load(std::memory_order_acquire)) {
    if (std::chrono::steady_clock::now() - begin > kPatience) {
      (void)capture.release();
      return text + "    does not answer\n";
    }
    std::this_thread::sleep_for(kLook);
  }
  // The innermost two are the handler and the kernel's way into it.
  for (size_t i = std::min<size_t>(2, capture->count); i < capture->count; ++i) {
    text += frame_text(capture->frames[i]);
  }
  return text;
}

}  // namespace

int stack_signal() { return SIGRTMAX - 5; }

int this_thread() { return int(syscall(SYS_gettid)); }

std::string thread_stacks(const std::vector<int>& others) {
  static std::mutex one_at_a_time;  // a signal's handler is the process's
  const std::lock_guard lock(one_at_a_time);
  struct sigaction before {
  }, ours{};
  ours.sa_sigaction = answer;
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigaction(stack_signal(), nullptr, &before);
  const bool is_ours = (before.sa_flags & SA_SIGINFO) && before.sa_sigaction == answer;
  if (!is_ours && before.sa_handler != SIG_DFL) {
    return fmt::format("  signal {}, by which threads are asked, is used by the process\n",
                       stack_signal());
  }
  // It stays: an answer that comes late would end the process otherwise.
  if (!is_ours) sigaction(stack_signal(), &ours, nullptr);
  std::string text;
  for (const int thread : threads_of(others)) text += stack_of(thread);
  return text;
}

}  // namespace cafetiere
