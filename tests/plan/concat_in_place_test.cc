// SPDX-License-Identifier: Apache-2.0
// Concatenation in place: which parts are computed in their places, and that no bit changes.
#include "core/plan/concat_in_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/plan/programs.h"

namespace cafetiere {
namespace {

using namespace test;  // NOLINT: helpers of these tests
using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Programs in which products can write parts.
struct Concats : Order {
  void product(const std::string& name, BufferId to) {
    step(name, {}, {}, {to}, {});
    program.steps().back().make_part = [](const Binder&, const Part&) { return Kernel{}; };
  }
  void concat(std::vector<BufferId> from, BufferId to) {
    const int64_t channels = int64_t(from.size()) * 8;
    std::vector<Part> parts;
    for (size_t i = 0; i < from.size(); ++i) parts.push_back({to, int64_t(i) * 8, channels});
    step("concat", std::move(from), {}, {to});
    program.steps().back().parts = std::move(parts);
  }
  std::vector<std::string> placed(size_t later = 0) {
    const size_t steps = program.steps().size(), end = concat_in_place(program, 0, steps - later);
    EXPECT_EQ(end + later, program.steps().size());
    std::vector<std::string> names;
    for (const Step& step : program.steps()) names.push_back(step.name + step.kernel);
    return names;
  }
};

TEST(ConcatInPlace, AStepWithoutPartsLeftIsRemoved) {
  Concats o;
  const BufferId x = o.buffer(), y = o.buffer(), whole = o.buffer();
  o.product("first", x);
  o.product("second", y);
  o.concat({x, y}, whole);
  o.step("next", {whole}, {}, {o.buffer()});
  EXPECT_THAT(o.placed(1),
              ElementsAre("first, into a concatenation", "second, into a concatenation", "next"));
  for (size_t i : {0, 1}) EXPECT_THAT(o.program.steps()[i].writes, ElementsAre(whole));
}

TEST(ConcatInPlace, OtherPartsAreCopied) {
  Concats o;
  const BufferId map = o.buffer(), part = o.buffer(), twice = o.buffer(), whole = o.buffer();
  o.step("map", {}, {}, {map});
  o.product("part", part);
  o.product("read twice", twice);
  o.concat({map, part, twice}, whole);
  o.step("next", {whole, twice}, {}, {o.buffer()});
  EXPECT_THAT(o.placed(),
              ElementsAre("map", "part, into a concatenation", "read twice", "concat", "next"));
  const Step& copies = o.program.steps()[3];
  EXPECT_THAT(copies.reads, ElementsAre(map, twice));
  EXPECT_EQ(copies.rows.reads, 2U);
}

TEST(ConcatInPlace, OfOneTensorTwiceBothPartsAreCopied) {
  Concats o;
  const BufferId x = o.buffer();
  o.product("product", x);
  o.concat({x, x}, o.buffer());
  EXPECT_THAT(o.placed(), ElementsAre("product", "concat"));
}

TEST(ConcatInPlace, OfConcatenationsTheInnerOneIsCopied) {
  Concats o;
  const BufferId x = o.buffer(), y = o.buffer(), z = o.buffer(), xy = o.buffer();
  o.product("x", x);
  o.product("y", y);
  o.concat({x, y}, xy);
  o.product("z", z);
  o.concat({xy, z}, o.buffer());
  EXPECT_THAT(o.placed(), ElementsAre("x, into a concatenation", "y, into a concatenation",
                                      "z, into a concatenation", "concat"));
}

const std::string kXavier = "weight_filler { type: 'xavier' }";

std::string branch(const std::string& name, const std::string& fields, bool relu) {
  const std::string own = "name: '" + name + "' bottom: 'x' top: '" + name + "'";
  return layer("Convolution", own, "convolution_param { " + fields + " " + kXavier + " }") +
         (relu ? layer("ReLU",
                       "name: '" + name + " relu' bottom: '" + name + "' top: '" + name + "'")
               : "");
}
/// Convolutions of each form, read by a concatenation with a pooling; widths that align nothing.
std::string branches(int64_t images, bool relu) {
  return input("x", {images, 32, 14, 14}) +
         branch("a", "num_output: 10 kernel_size: 1 bias_term: false", false) +
         branch("b", "num_output: 32 kernel_size: 3 pad: 1", relu) +
         branch("c", "num_output: 32 kernel_size: 5 pad: 2", relu) +
         branch("d", "num_output: 70 kernel_size: 1", relu) +
         layer("Pooling", "name: 'e' bottom: 'x' top: 'e'",
               "pooling_param { kernel_size: 3 stride: 1 pad: 1 }") +
         branch("f", "num_output: 24 kernel_size: 3 pad: 1 group: 2", relu) +
         layer("Concat",
               "name: 'all' bottom: 'a' bottom: 'b' bottom: 'c' bottom: 'd' bottom: 'e' "
               "bottom: 'f' top: 'y'") +
         layer("Convolution", "name: 'last' bottom: 'y' top: 'z'",
               "convolution_param { num_output: 8 kernel_size: 1 " + kXavier + " }");
}

std::vector<std::string> placed_in(const Figured& of) {
  std::vector<std::string> names;
  for (const StepInfo& step : of.steps) {
    if (step.kernel.find("into a concatenation") != std::string::npos) names.push_back(step.name);
  }
  return names;
}

int64_t bytes_moved(const Figured& of) {
  int64_t bytes = 0;
  for (const StepInfo& step : of.steps) bytes += step.bytes;
  return bytes;
}

TEST(ConcatInPlace, KeepsTheBitsOfNets) {
  for (const Precision precision : {Precision::kFloat32, Precision::kBFloat16}) {
    const auto device = make_cpu_device(precision);
    for (const int64_t images : {1, 3}) {
      for (const bool backward : {false, true}) {
        // Backward reads the result of a ReLU.
        const std::string net = branches(images, !backward);
        const Figured apart =
            figures_of(net, *device, 1, {.outputs = {}, .concat_in_place = false}, backward);
        EXPECT_THAT(placed_in(apart), IsEmpty());
        for (const int threads : {1, 3}) {
          const Figured placed = figures_of(net, *device, threads, {}, backward);
          expect_same_bits(placed.figures, apart.figures);
          EXPECT_THAT(placed_in(placed),
                      ElementsAre("a forward", "b forward", "c forward", "d forward", "f forward"));
          // These five, of 168 channels, are neither read nor written by a copy.
          const int64_t size = precision == Precision::kBFloat16 ? 2 : 4;
          EXPECT_EQ(bytes_moved(apart) - bytes_moved(placed), 2 * images * 168 * 14 * 14 * size);
        }
      }
    }
  }
}

TEST(ConcatInPlace, GradientsOfAReLUReadItsResult) {
  const auto device = make_cpu_device();
  EXPECT_THAT(placed_in(figures_of(branches(1, true), *device, 1, {})), ElementsAre("a forward"));
}

}  // namespace
}  // namespace cafetiere
