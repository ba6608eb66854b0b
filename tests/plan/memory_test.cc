// SPDX-License-Identifier: Apache-2.0
// The memory planner: buffers that are alive at the same time never overlap.
#include "core/plan/memory.h"

#include <gtest/gtest.h>

#include <random>

namespace cafetiere {
namespace {

Step step_of(std::vector<BufferId> reads, std::vector<BufferId> writes, size_t in_place = 0) {
  Step step;
  step.reads = std::move(reads);
  step.writes = std::move(writes);
  step.in_place = in_place;
  return step;
}

/// Runs the program on buffers of stamps: a step fails if what it reads is not what was written.
void expect_values_survive(const Program& program, const MemoryPlan& plan) {
  std::vector<int> arena(size_t(plan.bytes), -1);
  const auto extent = [&](BufferId id) {
    const int64_t at = plan.offsets[size_t(id)];
    EXPECT_GE(at, 0);
    EXPECT_LE(at + program.buffers()[size_t(id)].bytes, plan.bytes);
    return std::pair(arena.begin() + at, arena.begin() + at + program.buffers()[size_t(id)].bytes);
  };
  const auto expect_intact = [&](BufferId id, size_t when) {
    const auto [begin, end] = extent(id);
    EXPECT_TRUE(std::all_of(begin, end, [id](int stamp) { return stamp == id; }))
        << "buffer " << id << " is damaged at step " << when;
  };
  for (size_t s = 0; s < program.steps().size(); ++s) {
    for (BufferId id : program.steps()[s].reads) expect_intact(id, s);
    for (BufferId id : program.steps()[s].writes) {
      const auto [begin, end] = extent(id);
      std::fill(begin, end, id);
    }
    for (BufferId id : program.steps()[s].writes) expect_intact(id, s);
  }
  for (size_t id = 0; id < program.buffers().size(); ++id) {
    if (program.buffers()[id].keep) expect_intact(BufferId(id), program.steps().size());
  }
}

TEST(Memory, RandomProgramsKeepTheirValues) {
  std::mt19937 random(1);
  const auto below = [&](size_t n) { return random() % n; };
  for (int round = 0; round < 200; ++round) {
    Program program;
    std::vector<BufferId> written;
    for (size_t s = 0; s < 2 + below(30); ++s) {
      std::vector<BufferId> reads, writes;
      for (size_t i = 0; i < below(4) && !written.empty(); ++i) {
        reads.push_back(written[written.size() - 1 - below(std::min<size_t>(5, written.size()))]);
      }
      for (size_t i = 0; i < 1 + below(2); ++i) {
        const Format format = below(2) == 0 ? Format::kFloat32 : Format::kBFloat16;
        writes.push_back(program.scratch(int64_t(1 + below(3) * 64), format));
      }
      program.step(step_of(reads, writes, size_t(below(int(reads.size()) + 1))));
      written.insert(written.end(), writes.begin(), writes.end());
    }
    expect_values_survive(program, place(program));
  }
}

TEST(Memory, AChainNeedsTwoBuffersAndInPlaceOne) {
  for (const bool in_place : {false, true}) {
    Program program;
    BufferId last = program.scratch(640);
    program.step(step_of({}, {last}));
    for (int i = 0; i < 10; ++i) {
      const BufferId next = program.scratch(640);
      program.step(step_of({last}, {next}, in_place ? 1 : 0));
      last = next;
    }
    EXPECT_EQ(place(program).bytes, 4 * (in_place ? 640 : 1280));
  }
}

TEST(Memory, AnOptionalResultHasNoneUnlessItIsRead) {
  for (const bool read : {false, true}) {
    Program program;
    const BufferId result = program.scratch(640), index = program.scratch(640);
    Step step = step_of({}, {result, index});
    step.optional = 1;
    program.step(std::move(step));
    program.step(step_of(read ? std::vector{result, index} : std::vector{result}, {}));
    EXPECT_EQ(place(program).offsets[size_t(index)] >= 0, read);
    EXPECT_EQ(place(program).bytes, read ? 2 * 2560 : 2560);
  }
}

TEST(Memory, OfTwoInputsTheNewestIsOverwritten) {
  Program program;
  const BufferId first = program.scratch(640), second = program.scratch(640);
  const BufferId sum = program.scratch(640);
  program.step(step_of({}, {first}));
  program.step(step_of({}, {second}));
  program.step(step_of({first, second}, {sum}, 2));
  program.step(step_of({sum}, {}));
  const MemoryPlan plan = place(program);
  EXPECT_EQ(plan.offsets[size_t(sum)], plan.offsets[size_t(second)]);
  EXPECT_EQ(plan.bytes, 4 * 1280);
}

TEST(Memory, AnInputThatIsReadInAnotherWayTooIsNotOverwritten) {
  for (const bool too : {false, true}) {
    Program program;
    const BufferId x = program.scratch(640), y = program.scratch(640);
    program.step(step_of({}, {x}));
    program.step(step_of(too ? std::vector{x, x} : std::vector{x}, {y}, 1));
    program.step(step_of({y}, {}));
    const MemoryPlan plan = place(program);
    EXPECT_EQ(plan.offsets[size_t(x)] == plan.offsets[size_t(y)], !too);
  }
}

TEST(Memory, ALargeBufferTakesThePlaceOfASmallerOneBeforeIt) {
  Program program;
  const BufferId large = program.scratch(640), beside = program.scratch(64);
  const BufferId larger = program.scratch(1280);
  program.step(step_of({}, {large}));
  program.step(step_of({large}, {beside}));
  program.step(step_of({}, {larger}));
  program.step(step_of({beside, larger}, {}));
  EXPECT_EQ(place(program).bytes, 4 * (1280 + 64));
}

TEST(Memory, ElementsOfAnotherSizeAreNotWrittenInPlace) {
  Program program;
  const BufferId narrow = program.scratch(64, Format::kBFloat16), wide = program.scratch(64);
  program.step(step_of({}, {narrow}));
  program.step(step_of({narrow}, {wide}, 1));
  EXPECT_EQ(placed_size(64 * 2), placed_size(64 * 4));
  EXPECT_EQ(place(program).bytes, 2 * placed_size(64 * 4));
}

TEST(Memory, EachMemoryHasItsOwnArena) {
  Program program;
  const BufferId host = program.scratch(64);
  const BufferId device = program.scratch(64, Format::kFloat32, Space::kDevice);
  program.step(step_of({}, {host}));
  program.step(step_of({host}, {device}, 1));
  const MemoryPlan plan = place(program);
  EXPECT_EQ(plan.bytes, 64 * 4);
  EXPECT_EQ(plan.device_bytes, 64 * 4);
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{0, 0}));
}

TEST(Memory, KeptBuffersAreNeverReused) {
  Program program;
  const TensorId first = program.tensor("first", {64});
  const BufferId a = program.write(first, Layout::kRowMajor);
  program.step(step_of({}, {a}));
  program.keep(first);
  for (int i = 0; i < 3; ++i) {
    const BufferId b = program.scratch(64);
    program.step(step_of({a}, {b}, 0));
  }
  const MemoryPlan plan = place(program);
  expect_values_survive(program, plan);
  EXPECT_EQ(plan.bytes, 4 * 128);
}

TEST(Memory, UnusedAndExternalBuffersTakeNone) {
  Program program;
  program.external("x", {4});
  program.scratch(1000);
  const MemoryPlan plan = place(program);
  EXPECT_EQ(plan.bytes, 0);
  EXPECT_EQ(plan.offsets, (std::vector<int64_t>{-1, -1}));
}

}  // namespace
}  // namespace cafetiere
