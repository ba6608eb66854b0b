// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/base/guard.h"
#include "tests/base/few_threads.h"

namespace cafetiere {
namespace {

TEST(ThreadPool, RunsEachBlockOnce) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 2000; ++round) {
      const int blocks = round % 17;
      std::vector<std::atomic<int>> hits(blocks);
      pool.run(blocks, [&](int b) { hits[b].fetch_add(1); });
      for (auto& h : hits) ASSERT_EQ(h.load(), 1) << "threads " << threads << " round " << round;
    }
  }
}

TEST(ThreadPool, TwoPoolsWorkAtTheSameTime) {
  ThreadPool a(2), b(2);
  std::atomic<int> sum{0};
  std::thread other([&] {
    for (int i = 0; i < 500; ++i) b.run(8, [&](int) { sum.fetch_add(1); });
  });
  for (int i = 0; i < 500; ++i) a.run(8, [&](int) { sum.fetch_add(1); });
  other.join();
  EXPECT_EQ(sum.load(), 8000);
}

TEST(ThreadPool, WhatABlockThrowsIsThrownWhenAllAreDone) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 500; ++round) {
      std::atomic<int> done{0};
      const int bad = round % 8;
      // The pool may run on by itself after a throw: then `done` would be gone.
      EXPECT_THROW(pool.run(8,
                            [&](int b) {
                              if (b == bad) throw std::runtime_error("a kernel");
                              done.fetch_add(1);
                            }),
                   std::runtime_error);
      EXPECT_EQ(done.load(), threads > 1 ? 7 : bad);
    }
    std::atomic<int> sum{0};
    pool.run(8, [&](int) { sum.fetch_add(1); });
    EXPECT_EQ(sum.load(), 8) << "the pool goes on";
  }
}

TEST(ThreadPoolDeathTest, EndsItsThreadsWhenOneCannotStart) {
  if (kSanitized) GTEST_SKIP() << "limits do not hold for sanitizers";
  const auto starve = [] {
    allow_few_threads();
    const Status status = guard([] { ThreadPool pool(kTooManyThreads); });
    std::fputs(status.message().c_str(), stderr);
    EXPECT_EQ(status.code(), ErrorCode::kOutOfMemory);
    ThreadPool small(2);  // what had started is gone, and its stacks with it
    _exit(status.ok() ? 1 : 0);
  };
  EXPECT_EXIT(starve(), testing::ExitedWithCode(0), "64 threads were requested, .*limit");
}

}  // namespace
}  // namespace cafetiere
