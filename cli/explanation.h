// SPDX-License-Identifier: Apache-2.0
// What a net is compiled to, as text.
#pragma once

#include <optional>
#include <string>

#include "cli/loaded_net.h"
#include "core/machine/limits.h"
#include "core/model/prototxt.h"

namespace cafetiere {

/// A net to explain, in its solver's setting.
struct Subject {
  SolverText solver;
  bool has_solver = false;     ///< else SGD alone, without snapshots and test nets
  std::optional<NetText> net;  ///< in the place of what the solver names
  bool train = true;           ///< or the first test net
  int level = 0;
  std::vector<std::string> stages;
  TopShapes shapes;  ///< of data that is not there: see open_or_state()
  int batch = 0;     ///< rows in place of what the net says; 0: what it says
  /// Of the machine that would run it; without them the text has no times.
  std::optional<MachineLimits> limits;

  const NetText* given() const { return net ? &*net : nullptr; }
};

struct Explanation {
  std::unique_ptr<LoadedNet> net;
  PlanOptions options;
  double least_seconds = 0;   ///< of a pass over a batch without the update, with limits
  double update_seconds = 0;  ///< of the update after it, also with limits
  std::string text;  ///< layers, steps with kernels and reasons, and the memory that training takes
};

/// Compiles nothing and takes none of the memory that it predicts. `log` hears which data are not there.
Result<Explanation> explain(const Subject& subject, const Logger& log);

}  // namespace cafetiere
