// SPDX-License-Identifier: Apache-2.0
// The instruction set is the process's, so each of these tests looks at it in a process of its own.
#include "core/device/isa.h"

#include <gtest/gtest.h>
#include <libxsmm.h>

#include <cstdlib>

#include "core/device/cpu/brgemm.h"

namespace cafetiere {
namespace {

/// Leaves the process with 0 if all is as expected.
[[noreturn]] void leave(bool good) { std::exit(good ? EXIT_SUCCESS : EXIT_FAILURE); }

class InstructionSet : public ::testing::Test {
 protected:
  InstructionSet() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(InstructionSet, IsLoweredButNotRaised) {
  EXPECT_EXIT(
      leave(use_instruction_set(instruction_set()).ok() && use_instruction_set("generic").ok() &&
            instruction_set() == "generic" && !use_instruction_set("avx").ok()),
      ::testing::ExitedWithCode(EXIT_SUCCESS), "");
}

TEST_F(InstructionSet, StaysWhereCodeHasBeenGenerated) {
  EXPECT_EXIT(
      {
        const Brgemm product(8, 8, 8, 8, 8, 8, false);
        const std::string_view before = instruction_set();
        const Status status = use_instruction_set("generic");
        leave(before == "generic" || (status.message().find("start it anew") != std::string::npos &&
                                      instruction_set() == before));
      },
      ::testing::ExitedWithCode(EXIT_SUCCESS), "");
}

TEST_F(InstructionSet, IsLoweredByTheEnvironmentForGeneratedCodeToo) {
  EXPECT_EXIT(
      {
        ::setenv("CAFETIERE_ISA", "generic", 1);
        const Brgemm product(8, 8, 8, 8, 8, 8, false);
        leave(instruction_set() == "generic" && check_instruction_set().ok() &&
              libxsmm_get_target_archid() == LIBXSMM_TARGET_ARCH_GENERIC);
      },
      ::testing::ExitedWithCode(EXIT_SUCCESS), "");
}

TEST_F(InstructionSet, UnknownNamesInTheEnvironmentAreTold) {
  EXPECT_EXIT(
      {
        ::setenv("CAFETIERE_ISA", "sse9", 1);
        const std::string message = check_instruction_set().message();
        leave(message.starts_with("CAFETIERE_ISA: ") && message.find("'sse9'") != message.npos &&
              !use_instruction_set("generic").ok());
      },
      ::testing::ExitedWithCode(EXIT_SUCCESS), "");
}

TEST_F(InstructionSet, UnknownNamesAreRefused) {
  const Status status = use_instruction_set("sse9");
  EXPECT_NE(status.message().find("'sse9'"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace cafetiere
