// SPDX-License-Identifier: Apache-2.0
#include "tests/reference/training.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <regex>

#include "core/model/file.h"
#include "core/model/hdf5.h"
#include "core/model/weights.h"
#include "core/train/feeds.h"
#include "core/train/snapshots.h"
#include "core/train/trainer.h"

namespace cafetiere {
namespace {

struct Losses : EventSink {
  std::vector<float> values;
  void progress(const Progress& event) override { values.push_back(float(event.loss)); }
};

std::string read_text(const std::string& folder, const std::string& name) {
  std::ifstream file(fmt::format("{}/{}/{}.prototxt", CFT_REFERENCE_TESTS, folder, name));
  return {std::istreambuf_iterator<char>(file), {}};
}

Result<TrainingOutcome> train(const SolverText& solver, const std::string& weights_path,
                              const std::string& state_path, const std::string& device) {
  const Logger log;
  CFT_ASSIGN(const Snapshots snapshots, Snapshots::make(solver, log));
  CFT_ASSIGN(const NetChoice net, training_net(solver, nullptr));
  CFT_ASSIGN(const NetFeeds feeds, open_feeds(net, 1, log));
  Losses losses;
  TrainerOptions options;
  options.solver = solver;
  options.device = device;
  options.train_shapes = feeds.shapes;
  options.events = &losses;
  options.on_checkpoint = [&](const Checkpoint& c) { return snapshots.write(c); };
  CFT_ASSIGN(const auto trainer, Trainer::create(std::move(options)));
  if (!state_path.empty()) {
    CFT_TRY(resume(*trainer, state_path, log));
  } else if (std::ifstream(weights_path).is_open()) {
    CFT_ASSIGN(const StoredWeights weights, StoredWeights::open(weights_path));
    CFT_TRY(trainer->restore(weights));
  } else {
    CFT_ASSIGN(const std::string model, trainer->model_bytes());
    CFT_TRY(write_file(weights_path, model));
  }
  CFT_TRY(trainer->run(nullptr, feeds.feeds, {}));
  TrainingOutcome outcome{losses.values, {}};
  for (const Param& p : trainer->graph().params()) {
    const auto values = trainer->weights().subspan(size_t(p.offset), size_t(p.shape.count()));
    outcome.weights.emplace_back(values.begin(), values.end());
  }
  return outcome;
}

}  // namespace

TrainingBench::TrainingBench(const TrainedNet& net, const std::string& rule, bool hdf5, int images)
    : rule_(read_text("solvers", rule)), hdf5_(hdf5) {
  write_images(net, images);
  write_text(folder_.path("images.txt"), folder_.path("images.h5\n"));
  write_text(folder_.path("net.prototxt"),
             std::regex_replace(read_text("nets", net.name), std::regex("SOURCE"),
                                folder_.path("images.txt")));
}

/// Noise around one pattern a class, so that there is something to learn.
void TrainingBench::write_images(const TrainedNet& net, int count) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  const size_t pixels = size_t(net.channels) * size_t(net.side) * size_t(net.side);
  std::vector<float> patterns(10 * pixels), images, labels;
  for (float& v : patterns) v = normal(random);
  for (int i = 0; i < count; ++i) {
    const size_t label = random() % 10;
    labels.push_back(float(label));
    for (size_t k = 0; k < pixels; ++k) {
      images.push_back(0.25F * patterns[label * pixels + k] + 0.75F * normal(random));
    }
  }
  Hdf5Writer writer;
  EXPECT_TRUE(writer.floats("data", {count, net.channels, net.side, net.side}, images).ok());
  EXPECT_TRUE(writer.floats("label", {count}, labels).ok());
  write_text(folder_.path("images.h5"), *writer.finish());
}

std::string TrainingBench::solver_text(const std::string& name, int steps) const {
  return fmt::format(
      "{}net: '{}' max_iter: {} display: 1 snapshot_prefix: '{}' snapshot_format: {}", rule_,
      folder_.path("net.prototxt"), steps, folder_.path(name), hdf5_ ? "HDF5" : "BINARYPROTO");
}

TrainingOutcome TrainingBench::here(const std::string& name, int steps, const std::string& from,
                                    const std::string& device) {
  auto solver = parse_solver(solver_text(name, steps), "solver");
  EXPECT_TRUE(solver.ok()) << solver.status().message();
  if (!solver.ok()) return {};
  auto outcome = train(*solver, folder_.path("initial.caffemodel"), from, device);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return outcome.ok() ? *outcome : TrainingOutcome{};
}

TrainingOutcome TrainingBench::in_reference(const std::string& name, int steps,
                                            const std::string& from,
                                            const ReferenceKernels& kernels) {
  write_text(folder_.path(name) + ".prototxt", solver_text(name, steps));
  const std::string failure = run_reference(
      {kernels.float64 ? "train64" : "train", folder_.path(name) + ".prototxt",
       folder_.path(name) + ".out", from.empty() ? folder_.path("initial.caffemodel") : from},
      kernels);
  EXPECT_EQ(failure, "");
  if (!failure.empty()) return {};
  parity::Arrays arrays = parity::read_arrays(folder_.path(name) + ".out");
  TrainingOutcome outcome{arrays["loss"], {}};
  for (size_t i = 0; arrays.contains(fmt::format("param_{}", i)); ++i) {
    outcome.weights.push_back(arrays[fmt::format("param_{}", i)]);
  }
  return outcome;
}

std::string TrainingBench::state_path(const std::string& name, int steps) const {
  return fmt::format("{}_iter_{}.solverstate{}", folder_.path(name), steps, hdf5_ ? ".h5" : "");
}

}  // namespace cafetiere
