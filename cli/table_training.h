// SPDX-License-Identifier: Apache-2.0
// Trains a net on the rows of a table, through the C interface.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/fit_rows.h"
#include "cli/fit_task.h"
#include "core/base/status.h"

namespace cafetiere {

/// What a training made.
struct TrainedTable {
  std::string net;          ///< prototxt
  std::string weights;      ///< a caffemodel
  std::string events;       ///< one JSON object a line
  nlohmann::json result;    ///< as cft_trainer_result() tells
  int64_t step = 0;         ///< the last one done
  int64_t max_iter = 0;     ///< those that were to be done
  bool is_partial = false;  ///< whether a signal ended it before
};

/// Shows progress on the standard error stream. SIGINT and SIGHUP end the training after the step under
/// way; the weights are those of that step then.
Result<TrainedTable> train_table(const FitTask& task, const FitFlags& flags, SplitRows rows);

}  // namespace cafetiere
