// SPDX-License-Identifier: Apache-2.0
// Training through the C interface: what the host is given at the end, and how it stops a run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cafetiere/c_api.h"
#include "core/model/solver_state.h"
#include "core/model/weights.h"
#include "tests/capi/handed.h"
#include "tests/capi/small_training.h"
#include "tests/data/rows.h"
#include "tests/support/temp_dir.h"

namespace cafetiere {
namespace {

struct DestroyTrained {
  void operator()(cft_trainer* t) const { cft_trainer_destroy(t); }
  void operator()(cft_rows* r) const { cft_rows_destroy(r); }
};
using TrainerHandle = std::unique_ptr<cft_trainer, DestroyTrained>;

/// What the host's callbacks were given.
struct Host {
  std::vector<int64_t> checkpoints;  // steps
  int stop_at_event = 0;             // the event, from 1, whose answer is "stop"
  int events = 0;

  cft_callbacks callbacks() {
    return {.struct_size = sizeof(cft_callbacks),
            .context = this,
            .event = [](void* host, const char*) -> int {
              auto* self = static_cast<Host*>(host);
              return ++self->events == self->stop_at_event ? 1 : 0;
            },
            .checkpoint = [](void* host, const char* json, const void*, uint64_t, const void*,
                             uint64_t) -> int {
              static_cast<Host*>(host)->checkpoints.push_back(nlohmann::json::parse(json)["step"]);
              return 0;
            }};
  }
};

std::unique_ptr<cft_rows, DestroyTrained> trained_rows() {
  return std::unique_ptr<cft_rows, DestroyTrained>(small_rows(0));
}

TrainerHandle make_trained(const std::string& solver, Host* host) {
  const nlohmann::json options{
      {"solver", "base_lr: 0.1 momentum: 0.9 lr_policy: 'fixed' max_iter: 5 " + solver},
      {"net", kSmallNet}};
  const cft_callbacks callbacks = host->callbacks();
  cft_trainer* trainer = nullptr;
  EXPECT_EQ(cft_trainer_create(options.dump().c_str(), &callbacks, &trainer), CFT_OK)
      << cft_last_error();
  return TrainerHandle(trainer);
}

/// The state that a run of five iterations ends with.
SolverState state_after(const std::string& solver, Host* host) {
  const TrainerHandle trainer = make_trained(solver, host);
  const auto rows = trained_rows();
  EXPECT_EQ(cft_trainer_run(trainer.get(), nullptr, rows.get()), CFT_OK) << cft_last_error();
  const std::string bytes = handed_bytes(cft_trainer_state, trainer.get());
  auto state = parse_solver_state(std::as_bytes(std::span(bytes)));
  EXPECT_TRUE(state.ok()) << state.status().message();
  return state.ok() ? *state : SolverState();
}

/// A run of one rank that nobody stops.
void run_to_its_end(const nlohmann::json& options, const cft_callbacks& callbacks) {
  cft_trainer* made = nullptr;
  ASSERT_EQ(cft_trainer_create(options.dump().c_str(), &callbacks, &made), CFT_OK)
      << cft_last_error();
  const TrainerHandle trainer(made);
  const auto rows = trained_rows();
  ASSERT_EQ(cft_trainer_run(made, nullptr, rows.get()), CFT_OK) << cft_last_error();
}

TEST(TrainerInterface, GivesTheStateOfTheEndWithoutASnapshotAfterTraining) {
  Host with, without;
  const SolverState expected = state_after("", &with);
  EXPECT_EQ(expected.iter, 5);
  EXPECT_TRUE(state_after("snapshot_after_train: false", &without) == expected);
  EXPECT_THAT(with.checkpoints, testing::ElementsAre(5));
  EXPECT_THAT(without.checkpoints, testing::IsEmpty());
}

TEST(TrainerInterface, GivesTheStateOfTheEndAndNotOfAnEarlierSnapshot) {
  Host host;
  EXPECT_EQ(state_after("snapshot: 3 snapshot_after_train: false", &host).iter, 5);
  EXPECT_THAT(host.checkpoints, testing::ElementsAre(3));
}

/// A training whose checkpoints leave as files, and the folder that they are in.
struct InFiles {
  TrainerHandle trainer(int max_iter) {
    const nlohmann::json options{
        {"solver", "base_lr: 0.1 momentum: 0.9 lr_policy: 'fixed' snapshot_format: HDF5"},
        {"net", kSmallNet},
        {"max_iter", max_iter},
        {"checkpoint_folder", folder.path("")}};
    const cft_callbacks callbacks{.struct_size = sizeof(cft_callbacks),
                                  .context = this,
                                  .event = nullptr,
                                  .checkpoint = [](void* self, const char* json, const void* model,
                                                   uint64_t, const void* state, uint64_t) -> int {
                                    EXPECT_EQ(model, nullptr);
                                    EXPECT_EQ(state, nullptr);
                                    static_cast<InFiles*>(self)->told = nlohmann::json::parse(json);
                                    return 0;
                                  }};
    cft_trainer* trainer = nullptr;
    EXPECT_EQ(cft_trainer_create(options.dump().c_str(), &callbacks, &trainer), CFT_OK)
        << cft_last_error();
    return TrainerHandle(trainer);
  }

  void train(const TrainerHandle& trainer) {
    const auto rows = trained_rows();
    EXPECT_EQ(cft_trainer_run(trainer.get(), nullptr, rows.get()), CFT_OK) << cft_last_error();
  }

  const TempDir folder;
  nlohmann::json told;
};

TEST(TrainerInterface, CheckpointsMayLeaveAndComeBackAsFiles) {
  InFiles run;
  const TrainerHandle whole = run.trainer(5);
  run.train(whole);
  const TrainerHandle half = run.trainer(3);
  run.train(half);
  EXPECT_EQ(run.told["step"], 3);
  const std::string model = run.told["model_file"], state = run.told["state_file"];
  const TrainerHandle rest = run.trainer(5);
  ASSERT_EQ(cft_trainer_restore_files(rest.get(), model.c_str(), state.c_str()), CFT_OK)
      << cft_last_error();
  std::filesystem::remove(state);  // what is open can still be read
  run.train(rest);
  EXPECT_EQ(handed_bytes(cft_trainer_model, whole.get()),
            handed_bytes(cft_trainer_model, rest.get()));
  EXPECT_EQ(handed_bytes(cft_trainer_state, whole.get()),
            handed_bytes(cft_trainer_state, rest.get()));
  const std::string saved = run.folder.path("saved.caffemodel.h5");
  const std::string saved_state = run.folder.path("saved.solverstate.h5");
  EXPECT_NE(cft_trainer_save(rest.get(), "", "/no/such/folder/x"), CFT_OK);
  ASSERT_EQ(cft_trainer_save(rest.get(), saved.c_str(), saved_state.c_str()), CFT_OK)
      << cft_last_error();
  const auto weights = read_weights(saved);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  const auto opened = open_solver_state(saved_state);
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  EXPECT_EQ((*opened)->outline.iter, 5);
  EXPECT_EQ(cft_trainer_save(rest.get(), saved.c_str(), saved_state.c_str()), CFT_NOT_FOUND);
}

TEST(TrainerInterface, TheSolversSnapshotsAreToldBesideOtherCheckpoints) {
  struct Told {
    std::vector<std::pair<int64_t, bool>> steps;
    std::vector<std::string> weights;  // as the states name them
  } told;
  const nlohmann::json options{{"solver",
                                "base_lr: 0.1 lr_policy: 'fixed' max_iter: 6 snapshot: 3 "
                                "snapshot_prefix: 'hdfs://host/models/small'"},
                               {"net", kSmallNet},
                               {"checkpoint_every", 2},
                               {"snapshots", 1}};
  const cft_callbacks callbacks{
      .struct_size = sizeof(cft_callbacks),
      .context = &told,
      .event = nullptr,
      .checkpoint = [](void* context, const char* json, const void*, uint64_t, const void* state,
                       uint64_t bytes) -> int {
        auto* self = static_cast<Told*>(context);
        const auto parsed = nlohmann::json::parse(json);
        self->steps.emplace_back(parsed["step"], parsed["snapshot"]);
        const auto read = parse_solver_state({static_cast<const std::byte*>(state), size_t(bytes)});
        self->weights.push_back(read.ok() ? read->learned_net : read.status().message());
        return 0;
      }};
  ASSERT_NO_FATAL_FAILURE(run_to_its_end(options, callbacks));
  using Step = std::pair<int64_t, bool>;
  EXPECT_THAT(told.steps,
              testing::ElementsAre(Step(2, false), Step(3, true), Step(4, false), Step(6, true)));
  EXPECT_THAT(told.weights,
              testing::ElementsAre("", "small_iter_3.caffemodel", "", "small_iter_6.caffemodel"));
}

// However fast its steps are.
TEST(TrainerInterface, ProgressIsToldAtTheStepsOfDisplay) {
  nlohmann::json options = small_options(0, 1, "");
  options["solver"] = std::string(kSmallSolver) + " display: 14";
  std::vector<int64_t> steps;
  const cft_callbacks callbacks{
      .struct_size = sizeof callbacks,
      .context = &steps,
      .event =
          [](void* to, const char* json) {
            const auto event = nlohmann::json::parse(json);
            if (event["event"] == "progress") {
              static_cast<std::vector<int64_t>*>(to)->push_back(event["step"]);
            }
            return 0;
          },
      .checkpoint = nullptr};
  ASSERT_NO_FATAL_FAILURE(run_to_its_end(options, callbacks));
  EXPECT_THAT(steps, testing::ElementsAre(1, 15, 29, 40));
}

// A run this short has a progress event after its first iteration, and one at the end.
TEST(TrainerInterface, TheLastEventCanStopTheRunToo) {
  Host host;
  host.stop_at_event = 2;
  const TrainerHandle trainer = make_trained("", &host);
  const auto rows = trained_rows();
  EXPECT_EQ(cft_trainer_run(trainer.get(), nullptr, rows.get()), CFT_CANCELLED);
}

/// What a training of two ranks, each a team of its own, is told when rank 0 asks at its first event.
struct AskedFor {
  bool ask = false;
  cft_trainer* first = nullptr;
  std::vector<int64_t> checkpoints{};
  std::string sha256{};
};

void train_two_teams(AskedFor* run) {
  const auto groups = small_groups(2);
  const cft_callbacks callbacks{.struct_size = sizeof(cft_callbacks),
                                .context = run,
                                .event = [](void* context, const char*) -> int {
                                  auto* self = static_cast<AskedFor*>(context);
                                  if (std::exchange(self->ask, false)) {
                                    EXPECT_EQ(cft_trainer_checkpoint(self->first), CFT_OK);
                                  }
                                  return 0;
                                },
                                .checkpoint = [](void* context, const char* json, const void*,
                                                 uint64_t, const void*, uint64_t) -> int {
                                  const int64_t step = nlohmann::json::parse(json)["step"];
                                  static_cast<AskedFor*>(context)->checkpoints.push_back(step);
                                  return 0;
                                }};
  std::vector<TrainerHandle> trainers;
  for (int rank = 0; rank < 2; ++rank) {
    nlohmann::json options = small_options(rank, 2, "mode: 'hierarchical' period: 7 group_size: 1");
    options["solver"] = std::string(kSmallSolver) + " display: 1";
    cft_trainer* trainer = nullptr;
    EXPECT_EQ(cft_trainer_create(options.dump().c_str(), &callbacks, &trainer), CFT_OK)
        << cft_last_error();
    trainers.emplace_back(trainer);
  }
  run->first = trainers[0].get();
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const std::unique_ptr<cft_rows, DestroyTrained> rows(small_rows(int(rank)));
      EXPECT_EQ(cft_trainer_run(trainers[rank].get(), groups[rank], rows.get()), CFT_OK)
          << cft_last_error();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (cft_group* group : groups) cft_group_destroy(group);
  run->sha256 = nlohmann::json::parse(handed_text(cft_trainer_result, run->first))["sha256"];
}

// Where teams meet every seven steps, a checkpoint in between would have them meet there, too.
TEST(TrainerInterface, ACheckpointThatIsAskedForChangesNoWeights) {
  AskedFor asked{.ask = true}, undisturbed{.ask = false};
  train_two_teams(&undisturbed);
  train_two_teams(&asked);
  EXPECT_THAT(undisturbed.checkpoints, testing::ElementsAre(40));
  EXPECT_THAT(asked.checkpoints, testing::ElementsAre(7, 40));
  EXPECT_EQ(asked.sha256, undisturbed.sha256);
}

TEST(Hdf5Form, HoldsWhatTheBinaryFormDoes) {
  Host host;
  const TrainerHandle trainer = make_trained("", &host);
  const auto rows = trained_rows();
  ASSERT_EQ(cft_trainer_run(trainer.get(), nullptr, rows.get()), CFT_OK) << cft_last_error();
  const std::string model = handed_bytes(cft_trainer_model, trainer.get());
  const std::string state = handed_bytes(cft_trainer_state, trainer.get());
  const std::string model_file = handed_bytes(cft_weights_hdf5, model.data(), model.size());
  const std::string state_file =
      handed_bytes(cft_state_hdf5, state.data(), state.size(), "a.caffemodel.h5");
  EXPECT_EQ(model_file.substr(1, 3), "HDF");
  const auto weights_in = [](const std::string& bytes) {
    const auto net = parse_weights(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(net.ok()) << net.status().message();
    std::vector<std::vector<float>> blobs;
    for (const auto& layer : net->layer()) {
      for (const auto& b : layer.blobs()) blobs.emplace_back(b.data().begin(), b.data().end());
    }
    return blobs;
  };
  EXPECT_EQ(weights_in(model).size(), 2u);
  EXPECT_EQ(weights_in(model_file), weights_in(model));
  SolverState expected = *parse_solver_state(std::as_bytes(std::span(state)));
  expected.learned_net = "a.caffemodel.h5";
  EXPECT_TRUE(*parse_solver_state(std::as_bytes(std::span(state_file))) == expected);
}

TEST(SyncModes, TheTableSaysWhatEachAllows) {
  const auto modes = nlohmann::json::parse(handed_text(cft_sync_modes));
  std::vector<std::string> names, survivors, rounds, one, equal;
  for (const auto& mode : modes) {
    names.push_back(mode["name"]);
    if (mode["survivors"]) survivors.push_back(mode["name"]);
    if (mode["rounds"]) rounds.push_back(mode["name"]);
    if (mode["rank_shards"] == "one") one.push_back(mode["name"]);
    if (mode["rank_shards"] == "equal") equal.push_back(mode["name"]);
    EXPECT_FALSE(mode["text"].get<std::string>().empty());
    EXPECT_FALSE(mode["promises"].get<std::string>().empty());
  }
  using testing::ElementsAre;
  EXPECT_THAT(names, ElementsAre("allreduce", "average", "easgd", "downpour", "diloco",
                                 "hierarchical", "auto"));
  EXPECT_THAT(survivors, ElementsAre("average", "easgd", "downpour", "diloco"));
  EXPECT_THAT(rounds, ElementsAre("average", "diloco"));
  EXPECT_THAT(one, ElementsAre("easgd", "downpour"));
  EXPECT_THAT(equal, ElementsAre("hierarchical"));
}

}  // namespace
}  // namespace cafetiere
