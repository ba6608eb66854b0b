// SPDX-License-Identifier: Apache-2.0
#include "cli/time_report.h"

#include <gtest/gtest.h>

namespace cafetiere {
namespace {

StepInfo with_format(const std::string& format) {
  return {"conv1 weight gradient", "", 2e9, true, 4096, format};
}

// A weight gradient has operands in bfloat16 and sums in float32: the peak is that of bfloat16.
TEST(TimeReport, ThePeakIsThatOfTheOperands) {
  EXPECT_TRUE(work_of(with_format("bfloat16")).bf16);
  EXPECT_TRUE(work_of(with_format("bfloat16>float32")).bf16);
  EXPECT_FALSE(work_of(with_format("float32")).bf16);
  EXPECT_FALSE(work_of(with_format("float32>bfloat16")).bf16);
}

TEST(TimeReport, FormatsAreShort) {
  EXPECT_EQ(short_format("float32"), "f32");
  EXPECT_EQ(short_format("bfloat16>float32"), "bf16>f32");
}

}  // namespace
}  // namespace cafetiere
