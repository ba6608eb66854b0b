// SPDX-License-Identifier: Apache-2.0
// Where a plan steps its parameters, and what memory that frees.
#include "core/plan/param_updates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plan/lower.h"
#include "core/plan/memory.h"
#include "tests/plan/programs.h"

namespace cafetiere {
namespace {

using namespace test;  // NOLINT: helpers of these tests
using ::testing::ElementsAre;

constexpr int64_t kLarge = 1 << 20, kLittle = 8;  // floats

struct Updates : Order {
  std::vector<SteppedParam> params;

  /// A parameter of the caller's; its gradient is too, until the updates are added.
  SteppedParam param(const std::string& name, int64_t count) {
    const auto external = [&](const std::string& what) {
      return program.read(program.external(what, {count}), Layout::kRowMajor);
    };
    const BufferId data = external(name), gradient = external(name + " diff");
    params.push_back({params.size(), name, data, gradient});
    return params.back();
  }
  std::vector<std::string> names(size_t first_backward) {
    add_param_updates(program, first_backward, params);
    std::vector<std::string> names;
    for (const Step& step : program.steps()) names.push_back(step.name);
    return names;
  }
};

TEST(ParamUpdates, ALargeParameterIsSteppedOnceNothingUsesItAnyMore) {
  Updates u;
  const SteppedParam a = u.param("a", kLarge), b = u.param("b", kLarge), c = u.param("c", kLittle);
  u.step("forward", {}, {a.data, b.data}, {u.buffer()}, {});
  u.step("b weights", {}, {}, {b.gradient}, {});
  u.step("c bias", {}, {}, {c.gradient}, {});
  u.step("b data", {}, {b.data}, {u.buffer()}, {});
  u.step("a weights", {}, {}, {a.gradient}, {});
  u.step("last", {}, {}, {u.buffer()}, {});
  EXPECT_THAT(u.names(1), ElementsAre("forward", "b weights", "c bias", "b data", "b update",
                                      "a weights", "a update", "last", "small parameters' update"));
}

TEST(ParamUpdates, APassOverRowsStaysWhole) {
  Updates u;
  const SteppedParam a = u.param("a", kLarge);
  u.step("a weights", {}, {}, {a.gradient});
  u.step("joined", {}, {}, {u.buffer()});
  u.program.steps().back().joined = true;
  u.step("next", {}, {}, {u.buffer()});
  EXPECT_THAT(u.names(0), ElementsAre("a weights", "joined", "a update", "next"));
}

/// The newest step can step the parameter itself.
void can_update(Updates& u) {
  u.program.steps().back().make_update = [](const Binder&, size_t) { return Kernel{}; };
}

TEST(ParamUpdates, TheStepOfAGradientStepsItsParameterOnceNothingElseUsesIt) {
  Updates u;
  const SteppedParam a = u.param("a", kLarge), b = u.param("b", kLarge);
  u.step("forward", {}, {a.data, b.data}, {u.buffer()}, {});
  u.step("b weights", {}, {}, {b.gradient}, {});
  can_update(u);
  u.step("b data", {}, {b.data}, {u.buffer()}, {});
  u.step("a weights", {}, {}, {a.gradient}, {});
  can_update(u);
  u.step("last", {}, {}, {u.buffer()}, {});
  const int64_t before = place(u.program).bytes;
  EXPECT_THAT(u.names(1), ElementsAre("forward", "b data", "b weights", "a weights", "last"));
  EXPECT_THAT(u.program.steps()[2].writes, ElementsAre(b.data));
  EXPECT_EQ(place(u.program).bytes, before) << "a gradient takes memory";
}

TEST(ParamUpdates, AGradientThatOthersUseIsKept) {
  Updates u;
  const SteppedParam shared = u.param("shared", kLarge), read = u.param("read", kLarge);
  const SteppedParam joined = u.param("joined", kLarge);
  u.step("first", {}, {}, {shared.gradient}, {});
  can_update(u);
  u.step("second", {}, {}, {shared.gradient}, {});
  can_update(u);
  u.step("read", {}, {}, {read.gradient}, {});
  can_update(u);
  u.step("norm", {}, {read.gradient}, {u.buffer()}, {});
  u.step("joined", {}, {}, {joined.gradient});
  can_update(u);
  u.step("more", {}, {}, {u.buffer()});
  u.program.steps().back().joined = true;
  EXPECT_THAT(u.names(0), ElementsAre("first", "second", "shared update", "read", "norm",
                                      "read update", "joined", "more", "joined update"));
}

// As a normalisation's statistics, which forward observes: a pass forward alone leaves them.
TEST(ParamUpdates, NoneIsPartOfForward) {
  Updates u;
  const SteppedParam a = u.param("a", kLarge);
  u.step("observe", {}, {}, {a.gradient}, {});
  u.step("forward", {}, {}, {u.buffer()}, {});
  u.step("backward", {}, {}, {u.buffer()}, {});
  EXPECT_THAT(u.names(2), ElementsAre("observe", "forward", "a update", "backward"));
}

TEST(ParamUpdates, GradientsShareTheirMemory) {
  Updates u;
  for (const char* name : {"a", "b", "c"}) {
    u.step(name, {}, {}, {u.param(name, kLarge).gradient}, {});
  }
  EXPECT_EQ(place(u.program).bytes, 0);
  u.names(0);
  EXPECT_EQ(place(u.program).bytes, kLarge * int64_t(sizeof(float)));
}

}  // namespace
}  // namespace cafetiere
