// SPDX-License-Identifier: Apache-2.0
// What a machine can do at most, measured, and the time that this leaves an operation: its roofline.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"
#include "core/machine/bandwidth.h"

namespace cafetiere {

/// A cache, or the memory behind all of them.
struct MemoryLevel {
  std::string name;   ///< "L2", "L3" or "memory"
  int64_t bytes = 0;  ///< that it holds for all threads together
  Bandwidth rate;
};

/// The limits of some threads of a machine. GFLOP/s count a multiply-add as two.
struct MachineLimits {
  std::string instruction_set;  ///< in force when this was measured
  int threads = 0;
  double float32 = 0, float32_thread = 0;  ///< of all threads at once, and of one alone
  double bf16 = 0, bf16_thread = 0;        ///< by AMX; 0 without it
  std::string amx = "none";                ///< AmxState::name at the time
  std::vector<MemoryLevel> levels;         ///< the smallest first; the last one is the memory
  /// The share of its roofline's speed that a small training reaches; 0 where none was timed.
  double training = 0;
  std::string measured;  ///< when, in UTC
  double load = 0;       ///< of the machine then, of the last minute
};

/// Measures for less than two seconds.
MachineLimits measure_limits(int threads);

/// What an operation has to do.
struct StepWork {
  double flops = 0;
  int64_t bytes = 0;
  bool bf16 = false;  ///< its operands are bf16 alone
};

/// The least time that a machine needs for some work, and what sets it.
struct Roofline {
  double seconds = 0;
  std::string by;  ///< "compute", or the name of a MemoryLevel; empty for no work
};

/// The bytes come from the smallest level that holds all of them.
Roofline roofline(const StepWork& work, const MachineLimits& limits);

}  // namespace cafetiere
