// SPDX-License-Identifier: Apache-2.0
#include "cli/busy_limits.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "cli/explanation.h"
#include "cli/limits_flags.h"
#include "cli/machine.h"
#include "core/machine/crew.h"
#include "core/machine/limits_file.h"

namespace cafetiere {
namespace {

using Clock = std::chrono::steady_clock;

/// Convolutions and wide inner products, about half of the time each.
constexpr const char* kNet = R"(
  name: "reference"
  layer { name: "data" type: "Input" top: "data" top: "label"
    input_param { shape { dim: 64 dim: 3 dim: 32 dim: 32 } shape { dim: 64 } } }
  layer { name: "conv1" type: "Convolution" bottom: "data" top: "conv1"
    convolution_param { num_output: 32 kernel_size: 5 pad: 2 weight_filler { type: "xavier" } } }
  layer { name: "relu1" type: "ReLU" bottom: "conv1" top: "conv1" }
  layer { name: "pool1" type: "Pooling" bottom: "conv1" top: "pool1"
    pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
  layer { name: "conv2" type: "Convolution" bottom: "pool1" top: "conv2"
    convolution_param { num_output: 32 kernel_size: 3 pad: 1 weight_filler { type: "xavier" } } }
  layer { name: "relu2" type: "ReLU" bottom: "conv2" top: "conv2" }
  layer { name: "pool2" type: "Pooling" bottom: "conv2" top: "pool2"
    pooling_param { pool: MAX kernel_size: 2 stride: 2 } }
  layer { name: "ip1" type: "InnerProduct" bottom: "pool2" top: "ip1"
    inner_product_param { num_output: 1024 weight_filler { type: "xavier" } } }
  layer { name: "relu3" type: "ReLU" bottom: "ip1" top: "ip1" }
  layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
    inner_product_param { num_output: 10 weight_filler { type: "xavier" } } }
  layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip2" bottom: "label" top: "loss" })";

/// Seconds of a pass over a batch, in the mean of those after the first ones.
Result<double> mean_seconds(Plan& plan, ThreadPool& pool) {
  constexpr int kFirst = 2;
  constexpr double kSeconds = 0.7;
  Clock::time_point begin;
  for (int pass = 0;; ++pass) {
    if (pass == kFirst) begin = Clock::now();
    CFT_TRY(plan.run(pool, {.seed = 1}));
    if (pass < kFirst) continue;
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    if (seconds >= kSeconds) return seconds / (pass - kFirst + 1);
  }
}

/// The share of the speed that these limits allow that the reference net reaches.
Result<double> reached(const MachineLimits& limits) {
  Subject subject;
  CFT_ASSIGN(subject.net, parse_net(kNet, "reference"));
  subject.limits = limits;
  CFT_ASSIGN(const Explanation explained, explain(subject, {}));
  CFT_ASSIGN(const std::unique_ptr<Plan> plan, explained.net->compile(explained.options));
  for (const Plan::Blob& input : plan->inputs()) {
    std::fill_n(input.data, input.shape.count(), 0.5F);
  }
  ThreadPool pool(limits.threads);
  CFT_ASSIGN(const double seconds, mean_seconds(*plan, pool));
  return explained.least_seconds / seconds;
}

/// What each of so many like programs has of a machine.
MachineLimits divided(MachineLimits limits, int programs) {
  limits.threads /= programs;
  limits.float32 /= programs, limits.bf16 /= programs;
  limits.levels.front().bytes /= programs;  // L2: a cache of each core
  for (MemoryLevel& level : limits.levels) {
    level.rate.read /= programs, level.rate.copy /= programs;
  }
  return limits;
}

Result<MachineLimits> measure(int threads) {
  constexpr int kMost = 4;  // each takes 25 MB
  const int programs = std::clamp(usable_cores() / threads, 1, kMost);
  MachineLimits limits = divided(measure_limits(programs * threads), programs);
  std::vector<Result<double>> shares(size_t(programs), 0.0);
  Crew(programs).each([&](int program) { shares[size_t(program)] = reached(limits); });
  for (const Result<double>& share : shares) {
    CFT_ASSIGN(const double own, share);
    limits.training += own / programs;
  }
  return limits;
}

}  // namespace

Result<MachineLimits> busy_limits(int threads) {
  return cached_limits(limits_file(), limits_key(threads) + ", all cores busy", false,
                       [threads] { return measure(threads); });
}

}  // namespace cafetiere
