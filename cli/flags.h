// Flags that several commands have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/log.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// The parts of a comma separated list, without the spaces around them; none for an empty text.
std::vector<std::string> split_list(std::string_view text);

/// -level and -stage: which layers of a net are there, besides the phase.
struct StateFlags {
  int level = 0;
  std::string stages;

  void add(CLI::App& app);
  void apply(caffe::NetState* state) const;
};

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
