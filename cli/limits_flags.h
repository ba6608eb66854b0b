// SPDX-License-Identifier: Apache-2.0
// The machine's limits, for the commands that show a net beside them.
#pragma once

#include <CLI/CLI.hpp>

#include "core/machine/limits.h"

namespace cafetiere {

/// -measure: whether to take the limits that are kept for this machine, or to measure them anew.
struct LimitsFlags {
  bool anew = false;

  void add(CLI::App& app);
  /// Those of `threads` threads alone; kept by processor, instruction set, threads and version.
  MachineLimits get(int threads) const;
};

/// The key of such limits in the file that keeps them.
std::string limits_key(int threads);

/// "AMD EPYC, 2 threads, avx512: 210 GFLOP/s, L2 200 GB/s, ..": a line.
std::string summary(const MachineLimits& limits);

}  // namespace cafetiere
