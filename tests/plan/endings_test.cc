// SPDX-License-Identifier: Apache-2.0
// Endings: which sums the step of a term computes, and that no bit changes.
#include "core/plan/endings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/programs.h"

namespace cafetiere {
namespace {

using namespace test;  // NOLINT: helpers of these tests
using ::testing::ElementsAre;

/// Programs in which products offer an ending.
struct Endable : Order {
  void product(const std::string& name, BufferId to) {
    step(name, {}, {}, {to}, {});
    program.steps().back().make_ending = [](const Binder&, const Ending&) { return Kernel{}; };
  }
  void map(const std::string& name, Rule rule, std::vector<BufferId> from, BufferId to) {
    step(name, std::move(from), {}, {to});
    program.steps().back().rule = rule;
  }
  std::vector<std::string> merged(size_t backward = 0) {
    const size_t begin = program.steps().size() - backward;
    const size_t forward = merge_endings(program, 0, begin);
    EXPECT_EQ(merge_endings(program, forward, program.steps().size()), program.steps().size());
    std::vector<std::string> names;
    for (const Step& step : program.steps()) names.push_back(step.name + step.kernel);
    return names;
  }
};

TEST(Endings, TheLaterTermAddsTheOther) {
  for (const bool swapped : {false, true}) {
    Endable o;
    const BufferId x = o.buffer(), y = o.buffer(), sum = o.buffer(), top = o.buffer();
    o.product("first", x);
    o.product("second", y);
    o.map("sum", Rule::kSum, swapped ? std::vector{y, x} : std::vector{x, y}, sum);
    o.map("relu", Rule::kRelu, {sum}, top);
    o.step("next", {}, {top}, {o.buffer()}, {});
    EXPECT_THAT(o.merged(), ElementsAre("first", "second, with a sum and its ReLU", "next"));
    const Step& step = o.program.steps()[1];
    EXPECT_THAT(step.reads, ElementsAre(x));
    EXPECT_THAT(step.writes, ElementsAre(top));
    EXPECT_EQ(step.in_place, 1U);
  }
}

TEST(Endings, ASumThatIsReadTwiceKeepsItsReLU) {
  Endable o;
  const BufferId x = o.buffer(), y = o.buffer(), sum = o.buffer(), top = o.buffer();
  o.step("map", {}, {}, {x}, {});
  o.product("product", y);
  o.map("sum", Rule::kSum, {x, y}, sum);
  o.map("relu", Rule::kRelu, {sum}, top);
  o.step("next", {}, {sum, top}, {o.buffer()}, {});
  EXPECT_THAT(o.merged(), ElementsAre("map", "product, with a sum", "relu", "next"));
}

TEST(Endings, SumsOfSumsAreAddedOneAfterTheOther) {
  Endable o;
  const BufferId a = o.buffer(), b = o.buffer(), c = o.buffer(), ab = o.buffer(), all = o.buffer();
  o.step("map", {}, {}, {a}, {});
  o.product("second", b);
  o.map("sum", Rule::kSum, {a, b}, ab);
  o.product("third", c);
  o.map("sum again", Rule::kSum, {ab, c}, all);
  o.step("next", {}, {all}, {o.buffer()}, {});
  EXPECT_THAT(o.merged(), ElementsAre("map", "second, with a sum", "third, with a sum", "next"));
}

TEST(Endings, OthersStay) {
  Endable o;
  const BufferId x = o.buffer(), y = o.buffer(), z = o.buffer(), kept = o.buffer();
  o.product("product", x);
  o.step("later", {}, {}, {y}, {});
  o.map("the other term comes later", Rule::kSum, {x, y}, o.buffer());
  o.product("read twice", z);
  o.map("sum", Rule::kSum, {y, z}, kept);
  o.map("twice the same", Rule::kSum, {kept, kept}, o.buffer());
  o.map("other", Rule::kOther, {z, kept}, o.buffer());
  o.step("backward", {}, {}, {o.buffer()}, {});
  EXPECT_THAT(o.merged(1), ElementsAre("product", "later", "the other term comes later",
                                       "read twice", "sum", "twice the same", "other", "backward"));
}

std::string conv(const std::string& name, const std::string& from, const std::string& fields) {
  return layer("Convolution", "name: '" + name + "' bottom: '" + from + "' top: '" + name + "'",
               "convolution_param { " + fields + " weight_filler { type: 'xavier' } }");
}

/// A shortcut around a product read in place, one around a product laid out, with a ReLU and without.
const std::string kBlocks = input("x", {2, 64, 24, 24}) +
                            conv("a", "x", "num_output: 64 kernel_size: 1") +
                            conv("b", "a", "num_output: 64 kernel_size: 1") +
                            layer("Eltwise", "name: 'join' bottom: 'a' bottom: 'b' top: 'y'") +
                            layer("ReLU", "name: 'relu' bottom: 'y' top: 'y'") +
                            conv("p", "y", "num_output: 40 kernel_size: 1 stride: 2") +
                            conv("q", "y", "num_output: 40 kernel_size: 3 stride: 2 pad: 1") +
                            layer("Eltwise", "name: 'again' bottom: 'q' bottom: 'p' top: 'z'") +
                            conv("c", "z", "num_output: 24 kernel_size: 1");

TEST(Endings, KeepTheBitsOfNets) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const auto device = make_cpu_device(precision);
    const Figured apart = figures_of(kBlocks, *device, 1, {.outputs = {}, .endings = false});
    for (const int threads : {1, 3}) {
      const Figured merged = figures_of(kBlocks, *device, threads, {});
      expect_same_bits(merged.figures, apart.figures);
      std::vector<std::string> with;
      for (const StepInfo& step : merged.steps) {
        if (step.kernel.find(", with a sum") != std::string::npos) with.push_back(step.name);
      }
      // Backward, the gradients of both readers of y and of a are added.
      EXPECT_THAT(with, ElementsAre("b forward", "q forward", "p backward", "b backward"));
    }
  }
}

}  // namespace
}  // namespace cafetiere
