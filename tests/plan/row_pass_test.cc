// SPDX-License-Identifier: Apache-2.0
// Row passes: which steps are joined, that memory allows it, and that not a bit changes.
#include "core/plan/row_pass.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <random>

#include "core/device/map.h"
#include "core/graph/filler.h"
#include "core/plan/memory.h"
#include "tests/layers/harness.h"

namespace cafetiere {
namespace {

using ::testing::ElementsAre;

constexpr int64_t kRows = 40;

/// A program of steps by rows, of which only the order matters.
struct Order {
  Program program;

  BufferId buffer(int64_t floats = kRows * 8) { return program.scratch(floats); }
  /// Reads `rows` row by row and `wholes` as a whole.
  void step(const std::string& name, std::vector<BufferId> rows, std::vector<BufferId> wholes,
            std::vector<BufferId> writes, Rows kind = {.count = kRows, .width = 8}) {
    Step step;
    step.name = name;
    step.rows = kind;
    step.rows.reads = rows.size();
    step.reads = std::move(rows);
    step.reads.insert(step.reads.end(), wholes.begin(), wholes.end());
    step.writes = std::move(writes);
    program.step(std::move(step));
  }
  /// The names in order; "+name": joined to the one before.
  std::vector<std::string> joined() {
    join_rows(program, 0, program.steps().size());
    std::vector<std::string> names;
    for (const Step& step : program.steps()) names.push_back((step.joined ? "+" : "") + step.name);
    return names;
  }
};

constexpr Rows kSums{.count = kRows, .width = 8, .block = 16, .writes = false};

TEST(RowPass, ASmallStepBetweenIsPutOff) {
  Order o;
  const BufferId x = o.buffer(), y = o.buffer(), z = o.buffer(), w = o.buffer();
  const BufferId parts = o.buffer(24), sums = o.buffer(8);
  o.step("square", {x}, {}, {y});
  o.step("sum", {y}, {}, {parts}, kSums);
  o.step("merge", {}, {parts}, {sums}, {});
  o.step("double", {y}, {}, {z});
  o.step("center", {z}, {sums}, {w});
  EXPECT_THAT(o.joined(), ElementsAre("square", "+sum", "+double", "merge", "center"));
}

TEST(RowPass, WhatIsNeededAsAWholeEndsIt) {
  Order o;
  const BufferId x = o.buffer(), y = o.buffer(), z = o.buffer(), parts = o.buffer(24);
  o.step("square", {x}, {}, {y});
  o.step("shuffle", {x}, {y}, {z});
  o.step("sum", {z}, {}, {parts}, kSums);
  o.step("spread", {parts}, {}, {o.buffer()});
  EXPECT_THAT(o.joined(), ElementsAre("square", "shuffle", "+sum", "spread"));
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
  EXPECT_THAT(o.joined(),
              ElementsAre("a", "blocks of 8", "fewer rows", "b", "written again", "overwrites"));
}

TEST(RowPass, ALargeStepBetweenStays) {
  Order o;
  const BufferId x = o.buffer();
  o.step("a", {x}, {}, {o.buffer()});
  o.step("product", {}, {x}, {o.buffer()}, {});
  o.step("b", {x}, {}, {o.buffer()});
  EXPECT_THAT(o.joined(), ElementsAre("a", "product", "b"));
}

/// Runs placed steps, each pass as one kernel, and gives the values of the buffers that are kept.
std::vector<float> run(const Program& program, int threads) {
  const MemoryPlan places = place(program);
  std::vector<float> arena(size_t(places.bytes) / sizeof(float));
  std::vector<void*> addresses;
  for (int64_t offset : places.offsets) {
    addresses.push_back(arena.data() + std::max<int64_t>(0, offset) / int64_t(sizeof(float)));
  }
  const RunContext context;
  const Binder binder(addresses, &context);
  ThreadPool pool(threads);
  const auto& steps = program.steps();
  for (size_t i = 0; i < steps.size();) {
    std::vector<const Step*> pass{&steps[i]};
    for (++i; i < steps.size() && steps[i].joined; ++i) pass.push_back(&steps[i]);
    const Kernel kernel = RowPass(pass, binder).kernel();
    pool.run(kernel.blocks, kernel.run);
  }
  std::vector<float> kept;
  for (size_t id = 0; id < program.buffers().size(); ++id) {
    const Buffer& buffer = program.buffers()[id];
    const float* from = binder(BufferId(id));
    if (buffer.keep) kept.insert(kept.end(), from, from + buffer.bytes / int64_t(sizeof(float)));
  }
  return kept;
}

/// Element-wise steps, sums of channels and steps that use the sums, in any order; the same for the
/// same seed.
Program random_program(unsigned seed, Device& device) {
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return random() % n; };
  const Shape shape{int64_t(2 + below(9)), int64_t(1 + below(70)), int64_t(1 + below(20)), 17};
  const std::array layouts{Layout::kRowMajor, Layout::kPixels, Layout::kChannels};
  const Layout layout = layouts[below(3)];
  Program p(&device);
  const TensorId first = p.tensor("x", shape);
  Step source;
  source.writes = {p.write(first, layout)};
  source.make = [write = source.writes[0], count = shape.count()](const Binder& at) {
    float* to = at(write);
    return Kernel{1, [=](int) {
                    for (int64_t i = 0; i < count; ++i) to[i] = float(i * 37 % 101) / 50 - 1;
                  }};
  };
  p.step(std::move(source));
  std::vector<TensorId> tensors{first}, channels;
  const auto any = [&](const std::vector<TensorId>& of) {
    return of[of.size() - 1 - below(std::min<size_t>(of.size(), 3))];
  };
  for (int i = 0; i < 25; ++i) {
    const size_t kind = below(4);
    if (kind == 0) {
      const TensorId sum = p.tensor("sum", {shape[1]}), dot = p.tensor("dot", {shape[1]});
      device.channel_sums(p, "sums", {.a = any(tensors), .b = any(tensors)}, Gradient::plain(sum),
                          Gradient::plain(dot));
      channels.insert(channels.end(), {sum, dot});
    } else if (kind == 1 && !channels.empty()) {
      const TensorId next = p.tensor("scaled", shape);
      map_channels<1, 1>(p, "scale",
                         [](const auto& x, const auto& c) { return x[0] / (1 + c[0] * c[0]); },
                         next, {any(tensors)}, {any(channels)});
      tensors.push_back(next);
    } else {
      const TensorId next = p.tensor("mean", shape);
      map(
          p, "mean", [](float a, float b) { return (a + b) / 2; }, next, any(tensors),
          any(tensors));
      tensors.push_back(next);
    }
  }
  p.keep(tensors.back());
  if (!channels.empty()) p.keep(channels.back());
  return p;
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

std::string conv(const std::string& name, const std::string& bottom, const std::string& top) {
  return layer("Convolution", "name: '" + name + "' bottom: '" + bottom + "' top: '" + top + "'",
               "convolution_param { num_output: 16 kernel_size: 3 pad: 1 bias_term: false "
               "weight_filler { type: 'xavier' } }");
}

/// BatchNorm, Scale and, unless it is empty, ReLU in place on `blob`.
std::string normalized(const std::string& blob, const std::string& norm, const std::string& scale,
                       const std::string& relu) {
  const std::string wires = "' bottom: '" + blob + "' top: '" + blob + "'";
  return layer("BatchNorm", "name: 'norm " + blob + wires, norm) +
         layer("Scale", "name: 'scale " + blob + wires,
               scale + " scale_param { bias_term: true filler { type: 'gaussian' } }") +
         (relu.empty() ? "" : layer("ReLU", "name: 'relu " + blob + wires, relu));
}

/// A residual block as ResNet's are written.
std::string block(const std::string& norm, const std::string& scale) {
  return input("x", {9, 16, 7, 5}) + conv("c0", "x", "a") +
         normalized("a", norm, scale, "relu_param { }") + conv("c1", "a", "b") +
         normalized("b", norm, scale, "relu_param { negative_slope: 0.1 }") + conv("c2", "b", "c") +
         normalized("c", norm, scale, "") +
         layer("Eltwise", "name: 'join' bottom: 'a' bottom: 'c' top: 'y'") +
         layer("ReLU", "name: 'relu y' bottom: 'y' top: 'y'") + conv("c3", "y", "z");
}

struct Figured {
  Figures figures;
  std::vector<StepInfo> steps;
};

/// All that two passes leave, the second one accumulating.
Figured figures_of(const std::string& layers, Device& device, int threads, bool row_passes) {
  const auto net = TestNet::build(layers, caffe::TRAIN).value();
  Random random(1);
  ParamPointers pointers;
  for (size_t i = 0; i < net->graph().params().size(); ++i) {
    const Param& p = net->graph().params()[i];
    EXPECT_TRUE(fill(p.filler, p.shape, net->param(i), random).ok());
    pointers.data.push_back(net->param(i).data());
    pointers.diff.push_back(net->param_diff(i).data());
  }
  const auto plan = Plan::compile(
      net->graph(), device, pointers,
      {.backward = true, .feed_gradients = true, .outputs = {}, .row_passes = row_passes});
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  for (const Plan::Blob& b : (*plan)->inputs()) {
    random.gaussian(0, 1, {b.data, size_t(b.shape.count())});
  }
  for (const Plan::Blob& b : (*plan)->outputs()) {
    random.gaussian(0, 1, {b.diff, size_t(b.shape.count())});
  }
  ThreadPool pool(threads);
  for (const bool accumulate : {false, true}) {
    EXPECT_TRUE((*plan)->run(pool, {.loss_scale = 0.5F, .accumulate = accumulate}).ok());
  }
  Figured got{.figures = {}, .steps = (*plan)->describe()};
  for (size_t i = 0; i < net->graph().params().size(); ++i) {
    got.figures[std::to_string(i)] = {net->param_diff(i).begin(), net->param_diff(i).end()};
  }
  for (const auto& blobs : {(*plan)->outputs(), (*plan)->input_diffs()}) {
    for (const Plan::Blob& b : blobs) got.figures[b.name] = {b.data, b.data + b.shape.count()};
  }
  return got;
}

void expect_same_bits(const Figures& got, const Figures& expected) {
  ASSERT_EQ(got.size(), expected.size());
  const auto same = [](float a, float b) {
    return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b);
  };
  for (const auto& [name, values] : expected) {
    EXPECT_TRUE(std::ranges::equal(got.at(name), values, same)) << name;
  }
}

TEST(RowPass, ResidualBlocksKeepTheirBits) {
  const std::string frozen = "param { lr_mult: 0 } param { lr_mult: 0 }";
  const std::string global = "batch_norm_param { use_global_stats: true }";
  for (const auto& device : {make_ref_device(), make_cpu_device()}) {
    for (const std::string& net : {block("", ""), block(global, ""), block("", frozen)}) {
      const Figured apart = figures_of(net, *device, 1, false);
      for (const int threads : {1, 3}) {
        const Figured together = figures_of(net, *device, threads, true);
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
  const Figured got = figures_of(block("", ""), *device, 1, true);
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
  const auto net = TestNet::build(block("", ""), caffe::TRAIN).value();
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
