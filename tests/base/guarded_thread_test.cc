// SPDX-License-Identifier: Apache-2.0
#include "core/base/guarded_thread.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <new>
#include <stdexcept>

#include "core/base/guard.h"
#include "core/base/thread_stacks.h"
#include "tests/base/few_threads.h"

namespace cafetiere {
namespace {

using testing::HasSubstr;

/// What the thread's `failed` is given when its body throws `thrown`.
template <class E>
Status told(E thrown) {
  Status heard;
  GuardedThread thread;
  EXPECT_TRUE(thread
                  .start(
                      "a test", [&] { throw thrown; }, [&](const Status& s) { heard = s; })
                  .ok());
  thread.join();
  return heard;
}

TEST(GuardedThread, WhatItsBodyThrowsBecomesAStatus) {
  EXPECT_EQ(told(std::bad_alloc()).code(), ErrorCode::kOutOfMemory);
  EXPECT_EQ(told(std::runtime_error("odd")).message(), "odd");
  EXPECT_EQ(told(7).code(), ErrorCode::kInternal);
  EXPECT_EQ(told(StatusError(not_found("no file"))).code(), ErrorCode::kNotFound);
}

TEST(GuardedThread, SurvivesATellerThatThrows) {
  GuardedThread thread;
  ASSERT_TRUE(thread
                  .start(
                      "a test", [] { throw 1; }, [](const Status&) { throw 2; })
                  .ok());
  thread.join();
}

TEST(GuardedThread, TakesNoSignalsOfTheProcess) {
  sigset_t inside, before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  GuardedThread thread;
  ASSERT_TRUE(
      thread.start("a test", [&] { pthread_sigmask(SIG_SETMASK, nullptr, &inside); }, {}).ok());
  thread.join();
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGUSR1, SIGPIPE}) {
    EXPECT_TRUE(sigismember(&inside, signal)) << signal;
    EXPECT_EQ(sigismember(&after, signal), sigismember(&before, signal)) << signal;
  }
  EXPECT_FALSE(sigismember(&inside, SIGSEGV));
  EXPECT_FALSE(sigismember(&inside, stack_signal()));
}

TEST(GuardedThreadDeathTest, SaysWhatIsShortWhenItCannotStart) {
  if (kSanitized) GTEST_SKIP() << "limits do not hold for sanitizers";
  const auto starve = [] {
    allow_few_threads();
    GuardedThread threads[kTooManyThreads];
    Status status;
    for (GuardedThread& thread : threads) {
      if (status.ok()) status = thread.start("the test", [] { pause(); }, {});
    }
    EXPECT_EQ(status.code(), ErrorCode::kOutOfMemory);
    std::fputs(status.message().c_str(), stderr);
    _exit(status.ok() ? 1 : 0);
  };
  EXPECT_EXIT(starve(), testing::ExitedWithCode(0), "cannot start a thread for the test.*limit");
}

}  // namespace
}  // namespace cafetiere
