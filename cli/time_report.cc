// SPDX-License-Identifier: Apache-2.0
#include "cli/time_report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/loaded_net.h"
#include "cli/table.h"

namespace cafetiere {
namespace {

// With these and the figures' columns a line has 100 characters.
constexpr size_t kNameWidth = 30, kKernelWidth = 22;

std::string clipped(const std::string& text, size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 2) + "..";
}

/// The implementation alone, without widths and the reasons against others.
std::string kernel_name(const std::string& kernel) {
  const std::string first = kernel.substr(0, kernel.find("; "));
  return first.substr(0, first.find(" ("));
}

std::string figure(double value) {
  if (value <= 0) return "";
  return fmt::format("{:.{}f}", value, value < 10 ? 1 : 0);
}

double per_second(double work, double seconds) { return seconds > 0 ? work / seconds / 1e9 : 0; }

}  // namespace

StepWork work_of(const StepInfo& step) {
  return {.flops = step.flops,
          .bytes = step.bytes,
          .bf16 = step.format.starts_with(format_name(Format::kBFloat16))};
}

std::string short_format(const std::string& format) {
  const size_t arrow = format.find('>');
  const auto name = [](const std::string& whole) {
    return whole == format_name(Format::kFloat32) ? "f32" : "bf16";
  };
  if (arrow == format.npos) return name(format);
  return fmt::format("{}>{}", name(format.substr(0, arrow)), name(format.substr(arrow + 1)));
}

std::string step_table(const TimedSteps& timed, const MachineLimits& limits) {
  Table table({"step", "kernel", "format", "ms", "GFLOP/s", "GB/s", "share", "of"});
  double flops = 0, least = 0, seconds = 0;
  int64_t bytes = 0;
  const auto row = [&](const StepInfo& step, double took, double limit, const std::string& by) {
    table.add({clipped(step.name, kNameWidth), clipped(kernel_name(step.kernel), kKernelWidth),
               step.format.empty() ? "" : short_format(step.format),
               fmt::format("{:.3f}", took * 1e3), figure(per_second(step.flops, took)),
               figure(per_second(double(step.bytes), took)),
               took > 0 ? fmt::format("{:.0f} %", 100 * limit / took) : "", by});
  };
  for (size_t i = 0; i < timed.steps.size(); ++i) {
    const StepInfo& step = timed.steps[i];
    const Roofline limit = roofline(work_of(step), limits);
    row(step, timed.seconds[i], limit.seconds, limit.by);
    flops += step.flops, bytes += step.bytes;
    seconds += timed.seconds[i], least += limit.seconds;
  }
  row({"total", "", flops, false, bytes, ""}, seconds, least, "");
  return table.text(3);
}

nlohmann::json step_json(const TimedSteps& timed, const Graph& graph, const MachineLimits& limits) {
  nlohmann::json list = nlohmann::json::array();
  for (size_t i = 0; i < timed.steps.size(); ++i) {
    const StepInfo& step = timed.steps[i];
    const Roofline limit = roofline(work_of(step), limits);
    list.push_back({{"step", step.name},
                    {"layer", layer_of(step.name, graph)},
                    {"backward", step.backward},
                    {"kernel", step.kernel},
                    {"format", step.format},
                    {"flops", step.flops},
                    {"bytes", step.bytes},
                    {"seconds", timed.seconds[i]},
                    {"fastest_seconds", timed.fastest[i]},
                    {"least_seconds", limit.seconds},
                    {"limit", limit.by}});
  }
  return list;
}

}  // namespace cafetiere
