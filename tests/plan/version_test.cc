// SPDX-License-Identifier: Apache-2.0
// The versions of a tensor: which conversions are put in, and what they make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core/base/bfloat16.h"
#include "core/device/map.h"
#include "core/plan/memory.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;

constexpr auto kScn = Layout::kPixels;
constexpr auto kBf16 = Format::kBFloat16;

/// Runs a program whose external tensors are `externals`, in their order.
class ProgramRun {
 public:
  ProgramRun(const Program& program, std::vector<std::vector<float>*> externals)
      : plan_(place(program)), memory_(*allocate_host(plan_.bytes)) {
    size_t next = 0;
    for (size_t i = 0; i < plan_.offsets.size(); ++i) {
      const int64_t offset = std::max<int64_t>(plan_.offsets[i], 0);
      addresses_.push_back(program.buffers()[i].external ? externals[next++]->data()
                                                         : (void*)(memory_.get() + offset));
    }
    for (const Step& step : program.steps()) {
      const Kernel kernel = step.make(at());
      for (int block = 0; block < kernel.blocks; ++block) kernel.run(block);
    }
  }
  Binder at() const { return {addresses_, nullptr}; }

 private:
  MemoryPlan plan_;
  Memory memory_;
  std::vector<void*> addresses_;
};

std::vector<std::string> steps_of(const Program& program) {
  std::vector<std::string> list;
  for (const Step& step : program.steps()) list.push_back(step.name + ": " + step.kernel);
  return list;
}

std::vector<float> thirds(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::iota(values.begin(), values.end(), 1.F);
  for (float& v : values) v /= 3;
  return values;
}

TEST(Version, AConversionIsAStepAndIsMadeOnce) {
  Program program;
  const TensorId x = program.external("x", {2, 3, 4});
  EXPECT_EQ(program.read(x, Layout::kRowMajor), program.read(x, Layout::kRowMajor));
  const BufferId narrow = program.read(x, {kScn, kBf16});
  EXPECT_EQ(program.read(x, {kScn, kBf16}), narrow);
  EXPECT_THAT(steps_of(program), ElementsAre("x convert: NCS to SCN bfloat16"));
  EXPECT_EQ(program.buffers()[size_t(narrow)].bytes, 2 * 3 * 4 * 2);
  const BufferId rows = program.read(x, {Layout::kRowMajor, kBf16});
  EXPECT_NE(rows, narrow);
  EXPECT_EQ(program.steps().back().reads[0], program.read(x, Layout::kRowMajor)) << "not by kScn";
  EXPECT_EQ(program.steps().size(), 2U);
}

TEST(Version, ValuesAreRoundedOnTheWayToBfloat16AndExactBack) {
  const int64_t count = 3 * 5 * kMapBlock / 4;  // several blocks, and a rest
  Program program;
  const TensorId x = program.external("x", {3, 5, kMapBlock / 4});
  const TensorId y = program.tensor("y", program.shape(x));
  const BufferId narrow = program.read(x, {Layout::kRowMajor, kBf16});
  // A tensor that its step stores in 16 bits.
  Step store;
  store.reads = {narrow};
  store.writes = {program.write(y, {Layout::kRowMajor, kBf16})};
  store.make = [=, to = store.writes[0]](const Binder& at) {
    const auto* in = at.as<const uint16_t>(narrow);
    auto* out = at.as<uint16_t>(to);
    return Kernel{1, [=](int) { std::copy_n(in, count, out); }};
  };
  program.step(std::move(store));
  const BufferId wide = program.keep(y);
  EXPECT_EQ(program.steps().back().kernel, "NCS bfloat16 to NCS");
  std::vector<float> values = thirds(count);
  const ProgramRun run(program, {&values});
  for (int64_t i = 0; i < count; ++i) {
    ASSERT_EQ(run.at()(wide)[i], from_bfloat16(to_bfloat16(values[size_t(i)]))) << i;
  }
}

TEST(Version, LayoutAndFormatChangeTogetherAsOneAfterTheOther) {
  for (const Shape& shape : {Shape{2, 3, 70}, {5, 130, 7}, {3, 9, 1}, {1, 200, 129}, {70, 2, 3}}) {
    for (const Layout layout : {kScn, Layout::kChannels, Layout::kFeatures}) {
      Program program;
      const TensorId x = program.external("x", shape);
      const BufferId narrow = program.read(x, {layout, kBf16}), wide = program.read(x, layout);
      Step end;
      end.reads = {narrow, wide};
      end.make = [](const Binder&) { return Kernel{1, [](int) {}}; };
      program.step(std::move(end));
      std::vector<float> values = thirds(shape.count());
      const ProgramRun run(program, {&values});
      for (int64_t i = 0; i < shape.count(); ++i) {
        ASSERT_EQ(run.at().as<uint16_t>(narrow)[i], to_bfloat16(run.at()(wide)[i])) << i;
      }
    }
  }
}

// Element-wise steps compute in float32 whatever their input was stored in.
TEST(Version, AStepThatWantsFloatsReadsA16BitTensor) {
  Program program;
  const TensorId x = program.external("x", {2, 3, 4});
  const TensorId y = program.tensor("y", {2, 3, 4}), z = program.tensor("z", {2, 3, 4});
  Step store;
  store.reads = {program.read(x, {kScn, kBf16})};
  store.writes = {program.write(y, {kScn, kBf16})};
  store.make = [from = store.reads[0], to = store.writes[0]](const Binder& at) {
    return Kernel{1, [in = at.as<uint16_t>(from), out = at.as<uint16_t>(to)](int) {
                    std::copy_n(in, 24, out);
                  }};
  };
  program.step(std::move(store));
  map(
      program, "double", [](float v) { return v + v; }, z, y);
  const BufferId kept = program.keep(z);
  std::vector<float> values = thirds(24);
  const ProgramRun run(program, {&values});
  for (size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(run.at()(kept)[i], 2 * from_bfloat16(to_bfloat16(values[i])));
  }
}

// Memory of somebody else keeps its format: a step that writes another one gets what is there, and what
// it has made is brought back.
TEST(Version, AnExternalTensorIsBroughtBackInItsOwnFormat) {
  Program program;
  const TensorId x = program.external("x", {8});
  const auto add_one = [&] {
    Step step;
    step.name = "add";
    step.writes = {program.write(x, {Layout::kRowMajor, kBf16})};
    step.make = [to = step.writes[0]](const Binder& at) {
      return Kernel{1, [out = at.as<uint16_t>(to)](int) {
                      for (int i = 0; i < 8; ++i) out[i] = to_bfloat16(from_bfloat16(out[i]) + 1);
                    }};
    };
    program.step(std::move(step));
  };
  add_one();
  map(
      program, "double", [](float v) { return v + v; }, x, x);
  add_one();
  EXPECT_THAT(steps_of(program), ElementsAre("x convert: NCS to NCS bfloat16",
                                             "add: ", "x convert: NCS bfloat16 to NCS",
                                             "double: map NCS", "x convert: NCS to NCS bfloat16",
                                             "add: ", "x convert: NCS bfloat16 to NCS"));
  std::vector<float> values{0, 1, 2, 3, 4, 5, 6, 7};
  const ProgramRun run(program, {&values});
  EXPECT_THAT(values, ElementsAre(3, 5, 7, 9, 11, 13, 15, 17));
}

// So what reads it again finds what was converted before.
TEST(Version, TheSameShapeIsTheSameTensor) {
  Program program;
  const TensorId x = program.external("x", {4, 6});
  const TensorId view = program.reshaped(x, {4, 3, 2});
  const BufferId converted = program.read(view, Layout::kChannels);
  EXPECT_EQ(program.reshaped(x, {4, 3, 2}), view);
  EXPECT_EQ(program.read(program.reshaped(x, {4, 3, 2}), Layout::kChannels), converted);
  EXPECT_NE(program.reshaped(x, {4, 2, 3}), view);
  EXPECT_EQ(program.steps().size(), 1U);
}

// What was converted from the values before a write is not read after it, nor through another shape.
TEST(Version, AWriteForgetsWhatWasConvertedBefore) {
  Program program;
  const TensorId x = program.external("x", {4, 2});
  const TensorId view = program.reshaped(x, {4, 2, 1});
  const Version narrow(Layout::kRowMajor, kBf16);
  const BufferId before[] = {program.read(x, narrow), program.read(view, narrow)};
  map(
      program, "double", [](float v) { return v + v; }, x, x);
  EXPECT_NE(program.read(x, narrow), before[0]);
  EXPECT_NE(program.read(view, narrow), before[1]);
}

}  // namespace
}  // namespace cafetiere
