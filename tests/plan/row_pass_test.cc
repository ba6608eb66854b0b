// SPDX-License-Identifier: Apache-2.0
// Row passes: which steps are joined, that memory allows it, and that not a bit changes.
#include "core/plan/row_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/plan/programs.h"

namespace cafetiere {
namespace {

using namespace test;  // NOLINT: helpers of these tests
using ::testing::ElementsAre;

/// The names of the steps in order; "+name": joined to the one before.
std::vector<std::string> joined(Order& order) {
  join_rows(order.program, 0, order.program.steps().size());
  std::vector<std::string> names;
  for (const Step& step : order.program.steps()) {
    names.push_back((step.joined ? "+" : "") + step.name);
  }
  return names;
}

TEST(RowPass, ASmallStepBetweenIsPutOff) {
  Order o;
  const BufferId x = o.buffer(), y = o.buffer(), z = o.buffer(), w = o.buffer();
  const BufferId parts = o.buffer(24), sums = o.buffer(8);
  o.step("square", {x}, {}, {y});
  o.step("sum", {y}, {}, {parts}, kSums);
  o.step("merge", {}, {parts}, {sums}, {});
  o.step("double", {y}, {}, {z});
  o.step("center", {z}, {sums}, {w});
  EXPECT_THAT(joined(o), ElementsAre("square", "+sum", "+double", "merge", "center"));
}

TEST(RowPass, WhatIsNeededAsAWholeEndsIt) {
  Order o;
  const BufferId x = o.buffer(), y = o.buffer(), z = o.buffer(), parts = o.buffer(24);
  o.step("square", {x}, {}, {y});
  o.step("shuffle", {x}, {y}, {z});
  o.step("sum", {z}, {}, {parts}, kSums);
  o.step("spread", {parts}, {}, {o.buffer()});
  EXPECT_THAT(joined(o), ElementsAre("square", "shuffle", "+sum", "spread"));
}

TEST(RowPass, OtherRowsBlocksAndWritersEndIt) {
  Order o;
  const BufferId x = o.buffer(), y = o.buffer();
  o.step("a", {x}, {}, {o.buffer(24)}, kSums);
  o.step("blocks of 8", {x}, {}, {o.buffer(48)}, {.count = kRows, .block = 8, .writes = false});
  o.step("fewer rows", {x}, {}, {o.buffer()}, {.count = kRows / 2, .width = 16});
  o.step("b", {x}, {}, {y});
  o.step("written again", {x}, {}, {y});
  o.step("overwrites", {y}, {}, {x});
  EXPECT_THAT(joined(o),
              ElementsAre("a", "blocks of 8", "fewer rows", "b", "written again", "overwrites"));
}

TEST(RowPass, ALargeStepBetweenStays) {
  Order o;
  const BufferId x = o.buffer();
  o.step("a", {x}, {}, {o.buffer()});
  o.step("product", {}, {x}, {o.buffer()}, {});
  o.step("b", {x}, {}, {o.buffer()});
  EXPECT_THAT(joined(o), ElementsAre("a", "product", "b"));
}

TEST(RowPass, RandomProgramsKeepTheirBits) {
  const auto device = make_cpu_device();
  int joined = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const Program apart = random_program(seed, *device);
    Program together = random_program(seed, *device);
    join_rows(together, 0, together.steps().size());
    joined += int(std::ranges::count_if(together.steps(), &Step::joined));
    const std::vector<float> expected = run(apart, 1);
    EXPECT_EQ(run(together, 1), expected) << "seed " << seed;
    EXPECT_EQ(run(together, 3), expected) << "seed " << seed;
  }
  EXPECT_GT(joined, 200);
}

TEST(RowPass, ResidualBlocksKeepTheirBits) {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 }";
  const std::string global = "batch_norm_param { use_global_stats: true }";
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    for (const std::string& net :
         {residual_block("", ""), residual_block(global, ""), residual_block("", frozen)}) {
      const Figured apart = figures_of(net, *device, 1, {.outputs = {}, .row_passes = false});
      for (const int threads : {1, 3}) {
        const Figured together = figures_of(net, *device, threads, {});
        EXPECT_EQ(together.steps.size(), apart.steps.size());
        expect_same_bits(together.figures, apart.figures);
      }
    }
  }
}

// Forward, three layers, one of which applies the scale, and the sum with a shortcut; backward, from there
// to the sums of BatchNorm.
TEST(RowPass, ABlockIsNormalizedInOnePass) {
  const auto device = make_cpu_device();
  const Figured got = figures_of(residual_block("", ""), *device, 1, {});
  const auto pass_of = [&](const std::string& name) {
    const auto step = std::ranges::find(got.steps, name, &StepInfo::name);
    EXPECT_NE(step, got.steps.end()) << name;
    const size_t at = step->kernel.find("in the pass of ");
    return at == std::string::npos ? "" : step->kernel.substr(at + 15);
  };
  for (const char* name : {"join forward", "relu y forward"}) {
    EXPECT_EQ(pass_of(name), "norm c forward") << name;
  }
  EXPECT_EQ(pass_of("norm c gradient sums"), "relu y backward");
  EXPECT_EQ(pass_of("norm c backward"), "");
}

TEST(RowPass, StepsOfAPassShareItsTime) {
  const auto device = make_cpu_device();
  const auto net = TestNet::build(residual_block("", ""), caffe::TRAIN).value();
  const auto plan = net->plan(*device, 9).value();
  ThreadPool pool(2);
  std::vector<double> seconds;
  ASSERT_TRUE(plan->time(pool, {}, seconds).ok());
  const std::vector<StepInfo> steps = plan->describe();
  ASSERT_EQ(seconds.size(), steps.size());
  for (size_t i = 0; i < steps.size(); ++i) EXPECT_GT(seconds[i], 0) << steps[i].name;
}

}  // namespace
}  // namespace cafetiere
