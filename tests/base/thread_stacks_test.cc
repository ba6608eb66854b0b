// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_stacks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "core/base/guarded_thread.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;
using testing::Not;

/// A thread that waits until the end of the scope.
class Waiting {
 public:
  Waiting() {
    EXPECT_TRUE(thread_
                    .start("waiting",
                           [this] {
                             std::unique_lock lock(mutex_);
                             began_ = true;
                             changed_.notify_all();
                             changed_.wait(lock, [this] { return ended_; });
                           },
                           {})
                    .ok());
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return began_; });
  }
  ~Waiting() {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool began_ = false, ended_ = false;
  GuardedThread thread_;  // joined first
};

TEST(ThreadStacks, ShowWhatTheEnginesThreadsWaitFor) {
  const Waiting thread;
  const std::string text = thread_stacks({});
  EXPECT_THAT(text, HasSubstr("cft:waiting"));
  EXPECT_THAT(text, HasSubstr("libc.so.6+0x")) << "where it waits";
  EXPECT_THAT(text, HasSubstr("base_test+0x")) << "who waits";
  EXPECT_THAT(thread_stacks({}), HasSubstr("base_test+0x")) << "and can be asked again";
}

TEST(ThreadStacks, ShowAnyThreadThatIsNamed) {
  std::atomic<int> id{0};
  std::atomic<bool> ended{false};
  std::jthread other([&] {
    id = this_thread();
    id.notify_all();
    ended.wait(false);
  });
  id.wait(0);
  EXPECT_THAT(thread_stacks({}), Not(HasSubstr(std::to_string(id))));
  EXPECT_THAT(thread_stacks({id}), HasSubstr("thread " + std::to_string(id)));
  ended = true;
  ended.notify_all();
}

TEST(ThreadStacks, LeaveASignalToTheProcessThatUsesIt) {
  struct sigaction before {
  }, theirs{};
  theirs.sa_handler = SIG_IGN;
  sigaction(stack_signal(), &theirs, &before);
  const Waiting thread;
  EXPECT_THAT(thread_stacks({}), HasSubstr("is used by the process"));
  sigaction(stack_signal(), &before, nullptr);
}

}  // namespace
}  // namespace cafetiere
