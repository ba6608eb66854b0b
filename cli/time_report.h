// SPDX-License-Identifier: Apache-2.0
// What `time` measured of each step, beside what the machine could do.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/graph/graph.h"
#include "core/machine/limits.h"
#include "core/plan/lower.h"

namespace cafetiere {

/// A step's work, as its roofline takes it.
StepWork work_of(const StepInfo& step);
/// "f32", "bf16" or "bf16>f32".
std::string short_format(const std::string& format);

/// Steps of a plan, and for each the mean seconds and those of its fastest pass.
struct TimedSteps {
  std::vector<StepInfo> steps;
  std::vector<double> seconds, fastest;
};

/// A table of at most 100 columns; shares are those of the roofline's speed.
std::string step_table(const TimedSteps& timed, const MachineLimits& limits);

/// The same in full, for programs.
nlohmann::json step_json(const TimedSteps& timed, const Graph& graph, const MachineLimits& limits);

}  // namespace cafetiere
