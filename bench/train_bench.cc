// SPDX-License-Identifier: Apache-2.0
// Training speed: images/s of full steps (forward, loss, backward, update) on one resident batch.
//
//   train_bench SOLVER NET [THREADS [SECONDS [BLOCK [STEPS]]]]
//
// Prints JSON: the median over blocks of BLOCK steps, the fastest tenth, the same median by the
// process's CPU time (what a busy machine disturbs least), the shares of the step, and the state of AMX
// before and after. With STEPS it ends after so many steps and tells the most memory it held alone.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <random>

#include "core/device/isa.h"
#include "core/machine/amx.h"
#include "core/train/trainer.h"

namespace {

using namespace cafetiere;  // NOLINT: a program of this library
using Clock = std::chrono::steady_clock;

/// The same random batch again and again; the trainer copies it as it would copy a real one.
class ResidentBatch : public Source {
 public:
  ResidentBatch(std::vector<Shape> shapes, int64_t classes) : shapes_(std::move(shapes)) {
    std::mt19937 random(1);
    for (const Shape& shape : shapes_) {
      std::vector<float>& top = tops_.emplace_back(size_t(shape.count()));
      for (float& value : top) {
        value = shape.axes() > 1 ? float(random() >> 8) / float(1 << 24)
                                 : float(random() % uint32_t(classes));
      }
    }
  }
  std::vector<Shape> top_shapes() const override { return shapes_; }
  int64_t rows(int, int64_t) const override { return shapes_[0][0]; }
  Status fill(int, int64_t, std::span<float* const> tops) override {
    for (size_t i = 0; i < tops_.size(); ++i) std::copy(tops_[i].begin(), tops_[i].end(), tops[i]);
    return {};
  }

 private:
  std::vector<Shape> shapes_;
  std::vector<std::vector<float>> tops_;
};

constexpr size_t kWarmUp = 3, kLeast = 5;  // blocks

/// Notes the time of each report; with `display: N` that is every N steps. Stops when so much time has
/// passed and there are blocks enough, which a busy machine may take longer for.
struct Stopwatch : EventSink {
  double wanted = 0;
  std::function<void()> stop;
  std::vector<double> seconds, cpu_seconds;
  void progress(const Progress& event) override {
    seconds.push_back(event.seconds);
    cpu_seconds.push_back(double(std::clock()) / CLOCKS_PER_SEC);
    if (event.seconds >= wanted && seconds.size() >= kWarmUp + kLeast) stop();
  }
};

/// Seconds a step of each block, sorted; the first blocks warm up.
std::vector<double> block_means(const std::vector<double>& times, int block) {
  std::vector<double> steps;
  for (size_t i = kWarmUp; i < times.size(); ++i)
    steps.push_back((times[i] - times[i - 1]) / block);
  std::sort(steps.begin(), steps.end());
  return steps;
}

/// The most memory that this process ever held, in MiB.
double peak_mb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::atof(line.c_str() + 6) / 1024;
  }
  return 0;
}

Status run(int argc, char** argv) {
  TrainerOptions options;
  CFT_ASSIGN(options.solver, read_solver(argv[1]));
  CFT_ASSIGN(options.net, read_net(argv[2]));
  options.has_net = true;
  const int threads = options.threads = argc > 3 ? std::atoi(argv[3]) : 2;
  const int block = argc > 5 ? std::atoi(argv[5]) : 10;  // steps between two looks at the clock
  const int most_steps = argc > 6 ? std::atoi(argv[6]) : 0;
  const std::string amx_before = look_at_amx(threads).name;
  Stopwatch watch;
  watch.wanted = most_steps > 0 ? INFINITY : argc > 4 ? std::atof(argv[4]) : 5;
  options.events = &watch;
  caffe::SolverParameter& solver = options.solver.param;
  solver.set_display(block);
  solver.set_test_interval(0);
  solver.set_snapshot(0);
  solver.set_snapshot_after_train(false);
  solver.set_max_iter(most_steps > 0 ? most_steps : INT32_MAX);
  CFT_ASSIGN(const auto trainer, Trainer::create(std::move(options)));
  const Node& source = trainer->graph().nodes().front();
  CFT_ASSIGN(const std::vector<Shape> shapes, trainer->graph().infer(0));
  std::vector<Shape> tops;
  for (int blob : source.tops) tops.push_back(shapes[size_t(blob)]);
  ResidentBatch batch(tops, 10);
  watch.stop = [&] { trainer->request_stop(); };
  CFT_TRY(trainer->run(nullptr, {{source.param.name(), &batch}}, {}));
  if (most_steps > 0) {
    const nlohmann::json json{{"peak_mb", peak_mb()}, {"instruction_set", instruction_set()}};
    std::printf("%s\n", json.dump().c_str());
    return {};
  }

  const std::vector<double> steps = block_means(watch.seconds, block);
  const std::vector<double> cpu = block_means(watch.cpu_seconds, block);
  const double images = double(tops[0][0]);
  const nlohmann::json json{{"net", trainer->graph().name()},
                            {"batch", tops[0][0]},
                            {"images_per_s", images / steps[steps.size() / 2]},
                            {"images_per_s_p10", images / steps[steps.size() / 10]},
                            {"images_per_cpu_s", images / cpu[cpu.size() / 2]},
                            {"steps", steps.size() * block},
                            {"instruction_set", instruction_set()},
                            {"amx", {amx_before, look_at_amx(threads).name}},
                            {"not_compute", trainer->summary().not_compute}};
  std::printf("%s\n", json.dump().c_str());
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: train_bench SOLVER NET [THREADS [SECONDS [BLOCK [STEPS]]]]\n");
    return 2;
  }
  const Status status = run(argc, argv);
  if (!status.ok()) std::fprintf(stderr, "train_bench: %s\n", status.message().c_str());
  return status.ok() ? 0 : 1;
}
