// SPDX-License-Identifier: Apache-2.0
// Recomputing: which results are computed again, that it frees memory, and that not a bit changes.
#include "core/plan/recompute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/plan/memory.h"
#include "tests/plan/programs.h"

namespace cafetiere {
namespace {

using namespace test;  // NOLINT: helpers of these tests
using ::testing::Contains;
using ::testing::ElementsAre;

/// The names of the steps, of which so many are backward's, when results are computed again.
std::vector<std::string> recomputed(Order& order, size_t backward, int64_t least_bytes = 0) {
  recompute_rows(order.program, order.program.steps().size() - backward, least_bytes);
  std::vector<std::string> names;
  for (const Step& step : order.program.steps()) names.push_back(step.name);
  return names;
}

TEST(Recompute, AResultIsComputedBeforeItsFirstBackwardReader) {
  Order o;
  const BufferId x = o.buffer(), y = o.buffer(), dy = o.buffer();
  o.step("product", {}, {}, {x}, {});
  o.step("bend", {x}, {}, {y});
  o.step("next", {}, {y}, {dy}, {});
  o.step("next backward", {}, {dy}, {o.buffer()}, {});
  o.step("weights", {}, {y}, {o.buffer()}, {});
  o.step("product backward", {}, {x, y}, {o.buffer()}, {});
  EXPECT_THAT(recomputed(o, 3), ElementsAre("product", "bend", "next", "next backward",
                                            "bend again", "weights", "product backward"));
  const std::vector<Step>& steps = o.program.steps();
  EXPECT_NE(steps[4].writes[0], y);
  EXPECT_EQ(steps[4].reads[0], x);
  EXPECT_EQ(steps[5].reads[0], steps[4].writes[0]);
  EXPECT_THAT(steps[6].reads, ElementsAre(x, steps[4].writes[0]));
}

// As ReLU's gradient and BatchNorm's sums come after the gradient of the weights behind them.
TEST(Recompute, AReaderOfTheWholeWaitsForAPassThatReadsItToo) {
  Order o;
  const BufferId x = o.buffer(), y = o.buffer(), dy = o.buffer(), dx = o.buffer();
  const BufferId weights = o.buffer();
  o.step("product", {}, {}, {x}, {});
  o.step("bend", {x}, {}, {y});
  o.step("weights", {}, {y}, {weights}, {});
  o.step("unpack", {}, {weights}, {o.buffer()}, {});
  o.step("data", {}, {}, {dy}, {});
  o.step("mask", {y, dy}, {}, {dx});
  o.step("sums", {x, dx}, {}, {o.buffer(24)}, kSums);
  o.step("product backward", {}, {x, dx}, {o.buffer()}, {});
  EXPECT_THAT(recomputed(o, 6), ElementsAre("product", "bend", "data", "bend again", "mask", "sums",
                                            "weights", "unpack", "product backward"));
}

TEST(Recompute, OneThatThePassNeedsDoesNotWait) {
  Order o;
  const BufferId x = o.buffer(), y = o.buffer(), dy = o.buffer();
  o.step("product", {}, {}, {x}, {});
  o.step("bend", {x}, {}, {y});
  o.step("data", {}, {y}, {dy}, {});
  o.step("mask", {y, dy}, {}, {o.buffer()});
  o.step("product backward", {}, {x}, {o.buffer()}, {});
  EXPECT_THAT(recomputed(o, 3),
              ElementsAre("product", "bend", "bend again", "data", "mask", "product backward"));
}

TEST(Recompute, SoIsWhatItTookIfNothingElseKeepsThat) {
  Order o;
  const BufferId x = o.buffer(), y = o.buffer(), z = o.buffer();
  o.step("product", {}, {}, {x}, {});
  o.step("scale", {x}, {}, {y});
  o.step("bend", {y}, {}, {z});
  o.step("weights", {}, {z}, {o.buffer()}, {});
  o.step("sums", {x}, {}, {o.buffer(24)}, kSums);
  EXPECT_THAT(recomputed(o, 2), ElementsAre("product", "scale", "bend", "scale again", "bend again",
                                            "weights", "sums"));
}

TEST(Recompute, WhatIsKeptSmallWholeOrComputedOfWhatIsGoneStays) {
  Order gone;
  const BufferId x = gone.buffer(), y = gone.buffer();
  gone.step("product", {}, {}, {x}, {});
  gone.step("bend", {x}, {}, {y});
  gone.step("weights", {}, {y}, {gone.buffer()}, {});
  EXPECT_EQ(recomputed(gone, 1).size(), 3U);
  for (const int64_t least_bytes : {kRows * 32, kRows * 32 + 1}) {
    Order small;
    const BufferId a = small.buffer(), b = small.buffer();
    small.step("product", {}, {}, {a}, {});
    small.step("bend", {a}, {}, {b});
    small.step("weights", {a}, {b}, {small.buffer()}, {});
    EXPECT_EQ(recomputed(small, 1, least_bytes).size(), least_bytes > kRows * 32 ? 3U : 4U);
  }
  Order sums;
  const BufferId a = sums.buffer(), b = sums.buffer();
  sums.step("product", {}, {}, {a}, {});
  sums.step("sums", {a}, {}, {b}, kSums);
  sums.step("weights", {a}, {b}, {sums.buffer()}, {});
  EXPECT_EQ(recomputed(sums, 1).size(), 3U);
}

TEST(Recompute, ASumIsKeptInBfloat16) {
  for (const Format format : {Format::kFloat32, Format::kBFloat16}) {
    Order o;
    const BufferId a = o.buffer(), b = o.buffer();
    const BufferId sum = o.program.scratch(kRows * 8, format),
                   bent = o.program.scratch(kRows * 8, format);
    o.step("product", {}, {}, {a}, {});
    o.step("shortcut", {}, {}, {b}, {});
    o.step("sum", {a, b}, {}, {sum});
    o.step("bend", {a}, {}, {bent});
    o.step("weights", {}, {sum, bent}, {o.buffer()}, {});
    o.step("backward", {}, {a, b}, {o.buffer()}, {});
    const std::vector<std::string> names = recomputed(o, 2);
    EXPECT_THAT(names, Contains("bend again"));
    EXPECT_EQ(std::ranges::count(names, "sum again"), format == Format::kFloat32 ? 1 : 0);
  }
}

// A sum of blocks of which each needs the one before: every other one is kept.
TEST(Recompute, ACostlyResultIsKept) {
  Order o;
  const BufferId x = o.buffer(), y = o.buffer(), dy = o.buffer();
  o.step("product", {}, {}, {x}, {});
  o.step("gelu", {x}, {}, {y});
  o.program.steps().back().costly = true;
  o.step("data", {}, {y}, {dy}, {});
  o.step("product backward", {}, {x, y}, {o.buffer()}, {});
  EXPECT_THAT(recomputed(o, 2), ElementsAre("product", "gelu", "data", "product backward"));
}

TEST(Recompute, ACopyIsNotMadeOfACopy) {
  Order o;
  BufferId sum = o.buffer();
  o.step("product", {}, {}, {sum}, {});
  std::vector<BufferId> sums;
  for (const char* name : {"a", "b", "c"}) {
    const BufferId next = o.buffer();
    o.step(name, {sum}, {}, {next});
    sums.push_back(sum = next);
  }
  for (const char* name : {"c backward", "b backward", "a backward"}) {
    o.step(name, {}, {sums.back()}, {o.buffer()}, {});
    sums.pop_back();
  }
  o.step("product backward", {}, {o.program.steps()[0].writes[0]}, {o.buffer()}, {});
  EXPECT_THAT(recomputed(o, 4),
              ElementsAre("product", "a", "b", "c", "c again", "c backward", "b backward",
                          "a again", "a backward", "product backward"));
}

// Doubling 60 times: a search that looks at each result as often as it is read would not end.
TEST(Recompute, ALongChainIsFollowedOnce) {
  Order o;
  const BufferId first = o.buffer();
  BufferId last = first;
  o.step("product", {}, {}, {first}, {});
  for (int i = 0; i < 60; ++i) {
    const BufferId next = o.buffer();
    o.step("double", {last, last}, {}, {next});
    last = next;
  }
  o.step("weights", {}, {last}, {o.buffer()}, {});
  o.step("product backward", {}, {first}, {o.buffer()}, {});
  EXPECT_EQ(recomputed(o, 2).size(), 1 + 60 + 60 + 2U);
}

TEST(Recompute, RandomProgramsKeepTheirBits) {
  const auto device = make_cpu_device();
  size_t again = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const Program once = random_program(seed, *device);
    for (const size_t part : {3, 2}) {
      Program twice = random_program(seed, *device);
      const size_t first_backward = twice.steps().size() / part;
      recompute_rows(twice, first_backward, 0);
      again += twice.steps().size() - once.steps().size();
      join_rows(twice, 0, first_backward);
      join_rows(twice, first_backward, twice.steps().size());
      EXPECT_EQ(run(twice, 3), run(once, 1)) << "seed " << seed;
    }
  }
  EXPECT_GT(again, 15U);
}

TEST(Recompute, ResidualBlocksKeepTheirBitsInLessMemory) {
  const std::string net = residual_block("", "", {16, 16, 64, 60});
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const auto device = make_cpu_device(precision);
    const Figured kept = figures_of(net, *device, 2, {.outputs = {}, .recompute = false});
    const Figured again = figures_of(net, *device, 2, {});
    expect_same_bits(again.figures, kept.figures);
    EXPECT_LT(double(again.bytes), 0.95 * double(kept.bytes));
    std::vector<std::string> names;
    for (const StepInfo& step : again.steps) names.push_back(step.name);
    EXPECT_THAT(names, Contains("norm b forward again"));
    EXPECT_THAT(names, Contains("relu b forward again"));
  }
}

}  // namespace
}  // namespace cafetiere
