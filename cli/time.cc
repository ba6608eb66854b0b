// SPDX-License-Identifier: Apache-2.0
// time: how long each layer of a net takes, forward and backward, and what its steps reach of the machine.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/glog.h"
#include "cli/limits_flags.h"
#include "cli/loaded_net.h"
#include "cli/machine.h"
#include "cli/time_report.h"
#include "core/machine/limits_file.h"

namespace cafetiere {
namespace {

using Clock = std::chrono::steady_clock;

struct TimeFlags {
  std::string model, phase = "TRAIN";
  int iterations = 50;
  bool json = false;
  StateFlags state;
  ShapeFlags shapes;
  DeviceFlags device;
  std::string precision;
  LimitsFlags limits;
};

/// Milliseconds of one layer, summed over the iterations.
struct LayerTime {
  double forward = 0, backward = 0;
  int steps = 0;
};

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Numbers in [0, 1): as a label, any of them is class 0.
void fill_randomly(float* data, int64_t count) {
  std::minstd_rand random(1);
  std::generate_n(data, count, [&] { return float(random() % 1024) / 1024; });
}

/// Loads and compiles with gradients. A net without a loss, such as one to deploy, gets random ones
/// at its outputs, so that its backward pass can be timed too.
Status load_and_compile(const TimeFlags& flags, const Logger& log, std::unique_ptr<LoadedNet>* net,
                        std::unique_ptr<Plan>* plan) {
  caffe::NetState state;
  state.set_phase(flags.phase == "TRAIN" ? caffe::TRAIN : caffe::TEST);
  flags.state.apply(&state);
  CFT_ASSIGN(*net, LoadedNet::load(flags.model, state, log, false, &flags.shapes.by_top()));
  const bool has_loss = (*net)->has_loss();
  if (!has_loss) {
    CFT_ASSIGN(*net, LoadedNet::load(flags.model, state, log, true, &flags.shapes.by_top()));
  }
  if (!flags.precision.empty()) CFT_TRY((*net)->use_precision(flags.precision));
  CFT_ASSIGN(*plan,
             (*net)->compile({.backward = true, .feed_gradients = !has_loss, .outputs = {}}));
  for (const Plan::Blob& input : (*plan)->inputs()) fill_randomly(input.data, input.shape.count());
  for (const Plan::Blob& output : (*plan)->outputs()) {
    if (output.diff) fill_randomly(output.diff, output.shape.count());
  }
  return {};
}

/// Adds the seconds of a pass's steps to their sums, and keeps the least.
void add_pass(const std::vector<double>& pass, std::vector<double>* sums,
              std::vector<double>* least) {
  sums->resize(pass.size(), 0);
  least->resize(pass.size(), std::numeric_limits<double>::infinity());
  for (size_t i = 0; i < pass.size(); ++i) {
    (*sums)[i] += pass[i];
    (*least)[i] = std::min((*least)[i], pass[i]);
  }
}

/// Times one step after another over all iterations.
Status time_layers(const LoadedNet& net, Plan& plan, const TimeFlags& flags, const Logger& log,
                   std::map<std::string, LayerTime>* layers, TimedSteps* timed) {
  ThreadPool pool(flags.device.thread_count());
  for (const Feed& feed : net.feeds.feeds) CFT_TRY(net.fill(feed, 0, plan));
  log.info("Performing Forward");
  CFT_TRY(plan.run_forward(pool, {.seed = 1}));
  log.info("Initial loss: {:g}", plan.loss());
  log.info("Performing Backward");
  CFT_TRY(plan.run(pool, {.seed = 1}));
  log.info("*** Benchmark begins ***");
  log.info("Testing for {} iterations.", flags.iterations);
  std::vector<double> seconds, fastest;
  for (int i = 1; i <= flags.iterations; ++i) {
    const auto start = Clock::now();
    for (const Feed& feed : net.feeds.feeds) {
      const auto begin = Clock::now();
      CFT_TRY(net.fill(feed, i, plan));
      (*layers)[feed.layer].forward += ms_since(begin);
      (*layers)[feed.layer].steps = 1;
    }
    std::vector<double> once;
    CFT_TRY(plan.time(pool, {.seed = 1, .sub_step = i}, once));
    add_pass(once, &seconds, &fastest);
    log.info("Iteration: {} forward-backward time: {:g} ms.", i, ms_since(start));
  }
  timed->steps = plan.describe();
  for (size_t i = 0; i < seconds.size(); ++i) {
    const StepInfo& step = timed->steps[i];
    LayerTime& layer = (*layers)[layer_of(step.name, net.graph)];
    (step.backward ? layer.backward : layer.forward) += seconds[i] * 1e3;
    ++layer.steps;
    timed->seconds.push_back(seconds[i] / flags.iterations);
  }
  timed->fastest = std::move(fastest);
  return {};
}

void report(const Graph& graph, std::map<std::string, LayerTime>& layers, int iterations,
            double total, const Logger& log) {
  log.info("Average time per layer: ");
  LayerTime sum;
  for (const auto& [name, layer] : layers) {
    sum.forward += layer.forward;
    sum.backward += layer.backward;
  }
  for (const Node& node : graph.nodes()) {
    const std::string& name = node.param.name();
    const LayerTime& layer = layers[name];
    const char* note = layer.steps || node.type->source ? "" : " (part of another layer's step)";
    log.info("{:>10}\tforward: {:g} ms.{}", name, layer.forward / iterations, note);
    log.info("{:>10}\tbackward: {:g} ms.{}", name, layer.backward / iterations, note);
  }
  log.info("Average Forward pass: {:g} ms.", sum.forward / iterations);
  log.info("Average Backward pass: {:g} ms.", sum.backward / iterations);
  log.info("Average Forward-Backward: {:g} ms.", total / iterations);
  log.info("Total Time: {:g} ms.", total);
  log.info("*** Benchmark ends ***");
}

/// To the standard output, where Caffe has nothing: its lines are for others to parse.
void print_steps(const LoadedNet& net, const TimedSteps& timed, const TimeFlags& flags) {
  const MachineLimits limits = flags.limits.get(flags.device.thread_count());
  if (!flags.json) {
    fmt::print("{}\n{}", summary(limits), step_table(timed, limits));
    return;
  }
  const nlohmann::json json{
      {"net", net.graph.name()},        {"phase", flags.phase},
      {"iterations", flags.iterations}, {"cpu", cpu_name()},
      {"limits", json_of(limits)},      {"steps", step_json(timed, net.graph, limits)}};
  fmt::print("{}\n", json.dump());
}

Status time_net(const TimeFlags& flags) {
  Glog glog(stderr);
  const Logger log = glog.logger();
  flags.device.report(log);
  std::unique_ptr<LoadedNet> net;
  std::unique_ptr<Plan> plan;
  CFT_TRY(load_and_compile(flags, log, &net, &plan));
  std::map<std::string, LayerTime> layers;
  TimedSteps timed;
  CFT_TRY(time_layers(*net, *plan, flags, log, &layers, &timed));
  double total = 0;
  for (const auto& [name, layer] : layers) total += layer.forward + layer.backward;
  report(net->graph, layers, flags.iterations, total, log);
  print_steps(*net, timed, flags);
  return {};
}

}  // namespace

Action add_time(CLI::App& app) {
  const auto flags = std::make_shared<TimeFlags>();
  app.add_option("--model", flags->model, "the net's prototxt")->required();
  app.add_option("--iterations", flags->iterations, "passes to average over (default: 50)")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--phase", flags->phase, "TRAIN (default) or TEST")
      ->check(CLI::IsMember({"TRAIN", "TEST"}));
  app.add_flag("--json", flags->json, "print the steps as JSON instead of a table");
  flags->limits.add(app);
  flags->state.add(app);
  flags->shapes.add(app);
  flags->device.add(app);
  add_precision(app, &flags->precision);
  return [flags]() -> Status {
    CFT_TRY(flags->shapes.parse());
    return time_net(*flags);
  };
}

}  // namespace cafetiere
