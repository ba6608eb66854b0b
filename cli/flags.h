// SPDX-License-Identifier: Apache-2.0
// Flags that several commands have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "core/base/log.h"
#include "core/base/split_list.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// -level and -stage: which layers of a net are there, besides the phase.
struct StateFlags {
  int level = 0;
  std::string stages;

  void add(CLI::App& app);
  void apply(caffe::NetState* state) const;
};

/// Adds -precision: what products and activations are stored in, instead of what a solver says.
void add_precision(CLI::App& app, std::string* precision);

/// -gpu and -threads: where to compute.
struct DeviceFlags {
  std::string gpu;
  int threads = 0;  ///< 0 = all cores that this process may use

  void add(CLI::App& app);
  int thread_count() const;
  /// Says that the CPU is used; warns when a GPU was asked for, here or by the solver.
  void report(const Logger& log, bool solver_wants_gpu = false) const;
};

}  // namespace cafetiere
