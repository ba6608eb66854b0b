// SPDX-License-Identifier: Apache-2.0
// What the opaque handles of the C interface hold.
#pragma once

#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cafetiere/c_api.h"
#include "core/base/log_relay.h"
#include "core/comm/tcp_group.h"
#include "core/data/row_table.h"
#include "core/observe/events.h"
#include "core/train/rows_feed.h"
#include "core/train/trainer.h"

struct cft_row_budget {
  std::shared_ptr<cafetiere::RowBudget> budget;
};

struct cft_rows {
  cafetiere::RowTable table;
};

/// A solver that has joined it keeps it alive.
struct cft_group : std::enable_shared_from_this<cft_group> {
  cafetiere::LogRelay log;  // first: the group speaks through it
  std::unique_ptr<cafetiere::TcpGroup> group;
  std::shared_ptr<cft_group> owner;  // itself, until cft_group_destroy()
};

struct cft_trainer {
  cafetiere::LogRelay log;  // first: the trainer speaks through it
  cafetiere::Broadcast events;
  std::vector<cafetiere::LogMessage> notices;  // until a run begins, where they become events
  bool running = false;
  std::unique_ptr<cafetiere::Trainer> trainer;
  cft_callbacks callbacks{};
  cafetiere::InputBindings inputs;
  int rank = 0, size = 1, shards = 1;
  bool survivors = false;
  std::optional<cafetiere::RowTable> validation;
  std::unique_ptr<cafetiere::RowsSource> rows, held_out;  // kept for the next group, with survivors
  std::vector<std::string> rows_tops, held_out_tops;      // that they feed
  int64_t rows_given = 0;
  std::string checkpoint_folder;  // for what leaves as files; "" = nothing does
};

namespace cafetiere::capi {

/// As cft_trainer_result() says; null where the solver does not ask for it.
nlohmann::json stopping_json(const std::optional<EarlyStopping>& stopping);

/// The name of the weights' file of a snapshot, beside its state's, with `ending`; "" of a checkpoint
/// that is none.
std::string snapshot_weights(const caffe::SolverParameter& solver, const Checkpoint& checkpoint,
                             std::string_view ending);

/// Gives the host a checkpoint as files, if it has said where: one that the solver wants as HDF5 or
/// that is too large for bytes. Else false.
Result<bool> give_checkpoint_files(cft_trainer* t, const Checkpoint& checkpoint);

/// The host's answer to a checkpoint.
inline Status checkpoint_answer(int stop) {
  return stop ? Status(ErrorCode::kCancelled, "the checkpoint could not be stored") : Status();
}

}  // namespace cafetiere::capi
