// SPDX-License-Identifier: Apache-2.0
#include "core/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

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

}  // namespace
}  // namespace cafetiere
