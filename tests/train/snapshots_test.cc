// SPDX-License-Identifier: Apache-2.0
// Snapshots in HDF5: of any number of ranks, without a copy of what they hold.
#include "core/train/snapshots.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>

#include "core/graph/arena.h"
#include "core/layers/registry.h"
#include "core/model/file.h"
#include "core/train/feeds.h"
#include "core/train/history.h"
#include "core/train/trainer.h"
#include "tests/support/temp_dir.h"
#include "tests/train/child.h"
#include "tests/train/jobs.h"

namespace cafetiere {
namespace {

std::string wide_net(int inputs, int outputs) {
  return R"(name: "wide" layer { name: "data" type: "DummyData" top: "data" top: "label"
      dummy_data_param { data_filler { type: "constant" value: 0.01 } data_filler {}
        shape { dim: 2 dim: )" +
         std::to_string(inputs) + R"( } shape { dim: 2 } } }
    layer { name: "ip" type: "InnerProduct" bottom: "data" top: "ip"
      inner_product_param { num_output: )" +
         std::to_string(outputs) + R"( weight_filler { type: "xavier" } } }
    layer { name: "loss" type: "SoftmaxWithLoss" bottom: "ip" bottom: "label" top: "loss" })";
}

SolverText hdf5_solver(const std::string& prefix, int max_iter) {
  auto solver = parse_solver(
      "base_lr: 0.01 momentum: 0.9 lr_policy: 'fixed' random_seed: 3 snapshot_format: HDF5 "
      "snapshot_prefix: '" +
          prefix + "' max_iter: " + std::to_string(max_iter),
      "solver");
  EXPECT_TRUE(solver.ok()) << solver.status().message();
  return *std::move(solver);
}

/// Trains to `max_iter`, from a state if one is named, and leaves a snapshot.
Status train_wide(int inputs, int outputs, const std::string& prefix, int max_iter,
                  const std::string& state = "") {
  TrainerOptions options;
  options.solver = hdf5_solver(prefix, max_iter);
  CFT_ASSIGN(options.net, parse_net(wide_net(inputs, outputs), "net"));
  options.has_net = true;
  CFT_ASSIGN(const Snapshots snapshots, Snapshots::make(options.solver, {}));
  options.on_checkpoint = [&](const Checkpoint& c) { return snapshots.write(c); };
  CFT_ASSIGN(const NetChoice choice, training_net(options.solver, &options.net));
  CFT_ASSIGN(const NetFeeds feeds, open_feeds(choice, 3, {}));
  CFT_ASSIGN(const auto trainer, Trainer::create(std::move(options)));
  if (!state.empty()) CFT_TRY(resume(*trainer, state, {}));
  return trainer->run(nullptr, feeds.feeds, {});
}

TEST(Snapshots, InHdf5TakeAndGiveBackWithoutACopy) {
  if (kSanitized) GTEST_SKIP() << "with a sanitizer";
  const TempDir folder;
  constexpr int kInputs = 4096, kOutputs = 2048;
  const double arenas = 3.0 * kInputs * kOutputs * sizeof(float);  // weights, gradients, history
  const auto begin = [&] {
    CFT_TRY(train_wide(64, 64, folder.path("first"), 1));
    return train_wide(64, 64, folder.path("first"), 2, folder.path("first_iter_1.solverstate.h5"));
  };
  const int64_t whole = growth_in_child(
      begin, [&] { return train_wide(kInputs, kOutputs, folder.path("whole"), 2); });
  EXPECT_LE(double(whole), 1.2 * arenas);
  const int64_t half =
      growth_in_child(begin, [&] { return train_wide(kInputs, kOutputs, folder.path("half"), 1); });
  EXPECT_LE(double(half), 1.2 * arenas);
  const int64_t resumed = growth_in_child(begin, [&] {
    return train_wide(kInputs, kOutputs, folder.path("rest"), 2,
                      folder.path("half_iter_1.solverstate.h5"));
  });
  EXPECT_LE(double(resumed), 1.2 * arenas);
  std::printf("arenas %.1f MiB; with a snapshot %.1f MiB, resumed %.1f MiB\n", arenas / (1 << 20),
              double(half) / (1 << 20), double(resumed) / (1 << 20));
  const auto one = read_file(folder.path("whole_iter_2.caffemodel.h5"));
  const auto two = read_file(folder.path("rest_iter_2.caffemodel.h5"));
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_TRUE(*one == *two);
}

/// A training in HDF5 of `ranks` ranks, from another's state if it is named.
std::string trained(const TempDir& folder, const std::string& name, const std::string& solver,
                    int ranks, int max_iter, const std::string& from = "") {
  Job job{.net = kMixedNet, .pixels = 144, .ranks = ranks, .max_iter = max_iter, .solver = solver};
  job.snapshots = folder.path(name);
  job.resume = from;
  train(job);
  return folder.path(name + "_iter_" + std::to_string(max_iter) + ".solverstate.h5");
}

/// A state and its weights as the binary forms have them.
std::pair<std::string, std::string> contents(const std::string& state_path) {
  auto snapshot = open_snapshot(state_path);
  EXPECT_TRUE(snapshot.ok()) << snapshot.status().message();
  if (!snapshot.ok()) return {};
  snapshot->state->outline.learned_net = "";
  return {serialize_weights(*std::move(snapshot->weights).whole(), ModelFormat::kBinary).value(),
          serialize_solver_state(*snapshot->state, ModelFormat::kBinary).value()};
}

TEST(Snapshots, InHdf5AreTheSameOfAnyNumberOfRanks) {
  for (const std::string sync :
       {"mode: 'allreduce'", "mode: 'average' period: 5", "mode: 'diloco' period: 5",
        "mode: 'average' period: 5 history: 'averaged'"}) {
    const TempDir folder;
    const std::string solver =
        "type: 'Adam' base_lr: 0.001 momentum: 0.9 lr_policy: 'fixed' random_seed: 7 "
        "snapshot_format: HDF5 sync { " +
        sync + " }";
    const std::string one = trained(folder, "one", solver, 1, 20);
    const std::string half = trained(folder, "half", solver, 3, 10);
    const std::string rest = trained(folder, "rest", solver, 2, 20, half);
    EXPECT_TRUE(contents(one) == contents(rest)) << sync;
  }
}

/// Numbers that nobody reads.
struct NoNumbers final : StateSource {
  Status read(const StateArray&, size_t, std::span<float>) override {
    return internal_error("not read");
  }
};

TEST(Snapshots, LargerThanTheBinaryFormAreNoticedBeforeTheyAreMade) {
  const auto fits = [](int outputs, const Shape& history) {
    const auto net = parse_net(wide_net(20000, outputs), "net");
    const auto graph = Graph::build(*net, {}, {.types = layer_types(), .fed = {}});
    EXPECT_TRUE(graph.ok()) << graph.status().message();
    NoNumbers state;
    state.outline.history = {history};
    return Checkpoint{*graph, {}, {}, state}.fits_binary();
  };
  EXPECT_TRUE(fits(20000, {100}));
  EXPECT_FALSE(fits(30000, {100}));
  EXPECT_FALSE(fits(20000, {30000, 20000}));
}

}  // namespace
}  // namespace cafetiere
