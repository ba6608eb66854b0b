// SPDX-License-Identifier: Apache-2.0
#include "tests/plan/programs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "core/device/map.h"
#include "core/graph/filler.h"
#include "core/plan/memory.h"
#include "core/plan/row_pass.h"

namespace cafetiere::test {
namespace {

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

}  // namespace

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

std::string residual_block(const std::string& norm, const std::string& scale,
                           const std::vector<int64_t>& dims) {
  return input("x", dims) + conv("c0", "x", "a") + normalized("a", norm, scale, "relu_param { }") +
         conv("c1", "a", "b") + normalized("b", norm, scale, "relu_param { negative_slope: 0.1 }") +
         conv("c2", "b", "c") + normalized("c", norm, scale, "") +
         layer("Eltwise", "name: 'join' bottom: 'a' bottom: 'c' top: 'y'") +
         layer("ReLU", "name: 'relu y' bottom: 'y' top: 'y'") + conv("c3", "y", "z");
}

Figured figures_of(const std::string& layers, Device& device, int threads, PlanOptions options,
                   bool backward) {
  const auto net = TestNet::build(layers, caffe::TRAIN).value();
  Random random(1);
  ParamPointers pointers;
  for (size_t i = 0; i < net->graph().params().size(); ++i) {
    const Param& p = net->graph().params()[i];
    EXPECT_TRUE(fill(p.filler, p.shape, net->param(i), random).ok());
    pointers.data.push_back(net->param(i).data());
    pointers.diff.push_back(net->param_diff(i).data());
  }
  options.backward = options.feed_gradients = backward;
  const auto plan = Plan::compile(net->graph(), device, pointers, options);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  for (const Plan::Blob& b : (*plan)->inputs()) {
    random.gaussian(0, 1, {b.data, size_t(b.shape.count())});
  }
  for (const Plan::Blob& b : (*plan)->outputs()) {
    if (backward) random.gaussian(0, 1, {b.diff, size_t(b.shape.count())});
  }
  ThreadPool pool(threads);
  for (const bool accumulate : {false, true}) {
    EXPECT_TRUE((*plan)->run(pool, {.loss_scale = 0.5F, .accumulate = accumulate}).ok());
  }
  Figured got{.figures = {}, .steps = (*plan)->describe(), .bytes = (*plan)->arena_bytes()};
  for (size_t i = 0; i < net->graph().params().size(); ++i) {
    got.figures[std::to_string(i)] = {net->param_diff(i).begin(), net->param_diff(i).end()};
  }
  for (const auto& blobs : {(*plan)->outputs(), (*plan)->input_diffs()}) {
    for (const Plan::Blob& b : blobs) got.figures[b.name] = {b.data, b.data + b.shape.count()};
  }
  return got;
}

}  // namespace cafetiere::test
