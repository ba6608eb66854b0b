// SPDX-License-Identifier: Apache-2.0
#include "core/machine/limits.h"

#include <gtest/gtest.h>

#include <atomic>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/device/amx.h"
#include "core/device/isa.h"
#include "core/machine/amx.h"
#include "core/machine/limits_file.h"
#include "core/machine/multiply_adds.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

MachineLimits example() {
  MachineLimits limits;
  limits.float32 = 100, limits.bf16 = 1000;
  limits.levels = {{"L2", 1000, {50, 40}}, {"memory", 1 << 30, {10, 20}}};
  return limits;
}

TEST(Roofline, IsSetByArithmeticOrByTheLevelThatHoldsTheBytes) {
  const MachineLimits limits = example();
  const auto compute = roofline({.flops = 100e9, .bytes = 1000}, limits);
  EXPECT_EQ(compute.by, "compute");
  EXPECT_DOUBLE_EQ(compute.seconds, 1);
  const auto cached = roofline({.flops = 1, .bytes = 1000}, limits);
  EXPECT_EQ(cached.by, "L2");
  EXPECT_DOUBLE_EQ(cached.seconds, 1000 / 50e9);
  const auto memory = roofline({.flops = 1, .bytes = 1001}, limits);
  EXPECT_EQ(memory.by, "memory");
  EXPECT_DOUBLE_EQ(memory.seconds, 1001 / 20e9);
}

TEST(Roofline, CountsTilesForBf16WhereThereAreSome) {
  MachineLimits limits = example();
  const StepWork work{.flops = 100e9, .bytes = 0, .bf16 = true};
  EXPECT_DOUBLE_EQ(roofline(work, limits).seconds, 0.1);
  limits.bf16 = 0;
  EXPECT_DOUBLE_EQ(roofline(work, limits).seconds, 1);
}

TEST(Roofline, NothingToDoTakesNoTime) {
  EXPECT_EQ(roofline({}, example()).seconds, 0);
  EXPECT_EQ(roofline({}, MachineLimits()).by, "");
}

TEST(MultiplyAdds, AreCountedForEachSet) {
  EXPECT_EQ(multiply_adds("avx2"), multiply_adds("avx"));
  if (instruction_set().starts_with("avx512")) {
    EXPECT_EQ(multiply_adds("avx512"), 2 * multiply_adds("avx2"));
    EXPECT_EQ(multiply_adds(instruction_set()), multiply_adds("avx512"));
  }
}

TEST(Crew, EachThreadDoesItsShareOnce) {
  Crew crew(3);
  std::atomic<int> calls[3] = {};
  crew.each([&](int thread) { ++calls[thread]; });
  for (const auto& count : calls) EXPECT_EQ(count, 1);
}

TEST(MachineLimits, HasALevelForEachMemoryAndAmxWhereItIs) {
  const MachineLimits limits = measure_limits(2);
  EXPECT_EQ(limits.threads, 2);
  EXPECT_EQ(limits.instruction_set, instruction_set());
  ASSERT_GE(limits.levels.size(), 2u);
  EXPECT_EQ(limits.levels.front().name, "L2");
  EXPECT_EQ(limits.levels.back().name, "memory");
  for (size_t i = 1; i < limits.levels.size(); ++i) {
    EXPECT_GT(limits.levels[i].bytes, limits.levels[i - 1].bytes);
  }
  EXPECT_EQ(limits.amx != "none", amx_permitted());
  EXPECT_EQ(limits.bf16 > 0, amx_permitted());
  EXPECT_EQ(amx_products() > 0, amx_permitted());
}

TEST(Amx, StatesAreTheirRatioToFloat32) {
  EXPECT_EQ(amx_state(2350, 200), "fast");
  EXPECT_EQ(amx_state(610, 200), "slow");
  EXPECT_EQ(amx_state(1300, 200), "between");
  EXPECT_EQ(amx_state(0, 200), "none");
}

/// Counts how often the machine would have been measured.
struct Measure {
  int* calls;
  Result<MachineLimits> operator()() const {
    MachineLimits limits = example();
    limits.threads = ++*calls;
    return limits;
  }
};

MachineLimits kept(const std::string& file, const std::string& key, bool anew, int* calls) {
  return *cached_limits(file, key, anew, Measure{calls});
}

TEST(LimitsFile, IsReadAgainForItsKeyAlone) {
  const TempDir folder;
  const std::string file = folder.path("below/machine.json");
  int calls = 0;
  const MachineLimits first = kept(file, "a", false, &calls);
  EXPECT_EQ(json_of(kept(file, "a", false, &calls)), json_of(first));
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(kept(file, "b", false, &calls).threads, 2);
  EXPECT_EQ(kept(file, "a", true, &calls).threads, 3);
  EXPECT_EQ(kept(file, "b", false, &calls).threads, 2);
  EXPECT_EQ(kept(file, "a", false, &calls).threads, 3);
  EXPECT_EQ(calls, 3);
}

TEST(LimitsFile, KeepsNothingOfAMeasurementThatFails) {
  const TempDir folder;
  const std::string file = folder.path("machine.json");
  const auto fail = []() -> Result<MachineLimits> { return invalid_argument("no such core"); };
  EXPECT_EQ(cached_limits(file, "a", false, fail).status().message(), "no such core");
  int calls = 0;
  kept(file, "a", false, &calls);
  EXPECT_EQ(calls, 1);
}

TEST(LimitsFile, OneThatIsNotOursIsReplaced) {
  const TempDir folder;
  const std::string file = folder.path("machine.json");
  for (const char* text : {"", "[1]", R"({"a": {"threads": "two"}})", "{"}) {
    std::ofstream(file) << text;
    int calls = 0;
    kept(file, "a", false, &calls);
    kept(file, "a", false, &calls);
    EXPECT_EQ(calls, 1) << text;
  }
}

TEST(LimitsFile, OneThatCannotBeWrittenIsNoError) {
  int calls = 0;
  EXPECT_EQ(kept("/proc/none/machine.json", "a", false, &calls).threads, 1);
  EXPECT_EQ(kept("", "a", false, &calls).threads, 2);
}

}  // namespace
}  // namespace cafetiere
