// SPDX-License-Identifier: Apache-2.0
#include "cli/busy_limits.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "cli/machine.h"
#include "core/machine/limits_file.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

TEST(BusyLimits, AreAShareOfTheMachineAndAreKept) {
  const TempDir folder;
  ::setenv("XDG_CACHE_HOME", folder.path("").c_str(), 1);
  const Result<MachineLimits> first = busy_limits(1);
  ASSERT_TRUE(first.ok()) << first.status().message();
  EXPECT_EQ(first->threads, 1);
  EXPECT_GT(first->float32, 0);
  EXPECT_GT(first->training, 0);
  const int more_than_there_are = usable_cores() + 1;
  EXPECT_EQ(busy_limits(more_than_there_are)->threads, more_than_there_are);
  EXPECT_EQ(json_of(*busy_limits(1)), json_of(*first));
}

}  // namespace
}  // namespace cafetiere
