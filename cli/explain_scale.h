// SPDX-License-Identifier: Apache-2.0
// What more ranks would bring to a training, as cli/scale models it.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/loaded_net.h"

namespace cafetiere {

/// --ranks, --link and what the model is told about the machines.
struct ScaleFlags {
  int ranks = 1, ranks_per_host = 1, period = 10;
  std::string link = "10gbe";
  double seconds = 0;      ///< of an iteration's computation; 0: measured here
  double spread = 0.05;    ///< of these seconds: the standard deviation of their logarithm
  double mtbf_days = 365;  ///< mean time between failures of a host

  void add(CLI::App& app);
};

/// Prints a table for 1, 2, 4, ... ranks, and in words what is best for `flags.ranks` of them. Runs the
/// plan of `options` where the flags do not say how long an iteration takes.
Status print_scale(const ScaleFlags& flags, LoadedNet& net, const PlanOptions& options);

}  // namespace cafetiere
