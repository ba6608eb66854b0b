// SPDX-License-Identifier: Apache-2.0
#include "core/base/float_mode.h"

#include <gtest/gtest.h>

#include <cfloat>

#include "core/base/thread_pool.h"

namespace cafetiere {
namespace {

/// Half of the least normal number, computed now.
float half_of_least() {
  volatile float least = FLT_MIN;
  return least * 0.5F;
}

TEST(FloatMode, HoldsDuringItsLifetime) {
  ASSERT_GT(half_of_least(), 0);
  const FloatMode outer(Denormals::kZero);
  EXPECT_EQ(half_of_least(), 0);
  {
    const FloatMode inner(Denormals::kKept);
    EXPECT_EQ(half_of_least(), FLT_MIN / 2);
  }
  EXPECT_EQ(half_of_least(), 0);
}

/// A thread takes the settings of the one that starts it.
TEST(FloatMode, ThreadsOfAPoolKeepDenormalsWhoeverStartsThem) {
  const FloatMode of_the_host(Denormals::kZero);
  ThreadPool pool(3);
  std::vector<float> halves(64);
  GuardedThread thread;
  const auto compute = [&] {
    pool.run(64, [&](int block) { halves[size_t(block)] = half_of_least(); });
  };
  ASSERT_TRUE(thread.start("a test", compute, {}).ok());
  thread.join();
  for (float half : halves) EXPECT_EQ(half, FLT_MIN / 2);
}

}  // namespace
}  // namespace cafetiere
