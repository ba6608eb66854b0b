// SPDX-License-Identifier: Apache-2.0
// Inference speed: images/s of a net's forward pass on one resident batch, as a predictor runs it.
//
//   infer_bench NET BATCH [THREADS [SECONDS [PRECISION [STEPS]]]]
//
// NET: a prototxt whose first layer gives the images; what is computed is what its losses read. Prints
// JSON: the median over passes, the fastest tenth, and the same median by the process's CPU time. With
// STEPS the table of the slowest so many steps as well, on the standard error output.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>

#include "core/device/isa.h"
#include "core/device/precision.h"
#include "core/graph/arena.h"
#include "core/layers/registry.h"
#include "core/machine/amx.h"
#include "core/model/prototxt.h"
#include "core/plan/plan.h"

namespace {

using namespace cafetiere;  // NOLINT: a program of this library
using Clock = std::chrono::steady_clock;

double seconds(Clock::time_point since) {
  return std::chrono::duration<double>(Clock::now() - since).count();
}

/// The blobs that losses read.
std::vector<std::string> scores(const Graph& graph) {
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.type->loss) names.push_back(graph.blob_names()[size_t(node.bottoms[0])]);
  }
  return names;
}

void print_steps(const Plan& plan, const std::vector<double>& times, int passes, size_t count) {
  const std::vector<StepInfo> steps = plan.describe();
  std::vector<size_t> order(steps.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::sort(order, std::greater(), [&](size_t i) { return times[i]; });
  for (size_t i : std::span(order).first(std::min(count, order.size()))) {
    const double each = times[i] / passes;
    std::fprintf(stderr, "%9.1f us %7.1f GFLOP/s  %s: %s\n", each * 1e6,
                 steps[i].flops / each * 1e-9, steps[i].name.c_str(), steps[i].kernel.c_str());
  }
}

Status run(int argc, char** argv) {
  const int64_t batch = std::atoll(argv[2]);
  const int threads = argc > 3 ? std::atoi(argv[3]) : 2;
  const double wanted = argc > 4 ? std::atof(argv[4]) : 5;
  const int shown = argc > 6 ? std::atoi(argv[6]) : 0;
  CFT_ASSIGN(const Precision precision, precision_of(argc > 5 ? argv[5] : "float32"));
  CFT_ASSIGN(const NetText text, read_net(argv[1]));
  caffe::NetState state;
  state.set_phase(caffe::TEST);
  CFT_ASSIGN(const Graph graph, Graph::build(text, state, {.types = layer_types(), .fed = {}}));
  std::vector<float> weights(size_t(graph.arena_size()));
  Random random{1};
  CFT_TRY(init_params(graph, random, weights));
  const auto device = make_cpu_device(precision);
  CFT_ASSIGN(
      const auto plan,
      Plan::compile(
          graph, *device, param_pointers(graph, weights.data(), nullptr),
          {.batch = batch, .outputs = scores(graph), .fixed = std::make_shared<FixedValues>()}));
  for (const Plan::Blob& input : plan->inputs()) {
    random.uniform(0, 1, {input.data, size_t(input.shape.count())});
  }
  const std::string amx_before = look_at_amx(threads).name;
  ThreadPool pool(threads);
  CFT_TRY(plan->run(pool, {}));
  std::vector<double> passes, cpu;
  for (const auto begun = Clock::now(); seconds(begun) < wanted || passes.size() < 5;) {
    const auto before = Clock::now();
    const std::clock_t ticks = std::clock();
    CFT_TRY(plan->run(pool, {}));
    passes.push_back(seconds(before));
    cpu.push_back(double(std::clock() - ticks) / CLOCKS_PER_SEC);
  }
  std::vector<double> times;
  const int timed = int(std::clamp<size_t>(passes.size() / 2, 3, 200));
  for (int i = 0; i < timed && shown > 0; ++i) CFT_TRY(plan->time(pool, {}, times));
  if (shown > 0) print_steps(*plan, times, timed, size_t(shown));
  std::ranges::sort(passes);
  std::ranges::sort(cpu);
  const nlohmann::json json{{"net", graph.name()},
                            {"batch", batch},
                            {"images_per_s", double(batch) / passes[passes.size() / 2]},
                            {"images_per_s_p10", double(batch) / passes[passes.size() / 10]},
                            {"images_per_cpu_s", double(batch) / cpu[cpu.size() / 2]},
                            {"passes", passes.size()},
                            {"instruction_set", instruction_set()},
                            {"amx", {amx_before, look_at_amx(threads).name}},
                            {"arena_mb", double(plan->arena_bytes()) / (1 << 20)}};
  std::printf("%s\n", json.dump().c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: infer_bench NET BATCH [THREADS [SECONDS [PRECISION [STEPS]]]]\n");
    return 2;
  }
  const Status status = run(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "infer_bench: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
