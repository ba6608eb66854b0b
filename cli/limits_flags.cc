// SPDX-License-Identifier: Apache-2.0
#include "cli/limits_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "cli/machine.h"
#include "core/device/amx.h"
#include "core/device/isa.h"
#include "core/machine/amx.h"
#include "core/machine/limits_file.h"

namespace cafetiere {

void LimitsFlags::add(CLI::App& app) {
  app.add_flag(
      "--measure", anew,
      "measure the machine's limits again instead of using those in cafetiere/machine.json of "
      "the user's cache folder");
}

std::string limits_key(int threads) {
  return fmt::format("{}, {}{}, code for {}, {} threads, version {}", cpu_name(),
                     fmt::join(instruction_sets(), " "), amx_permitted() ? " amx" : "",
                     instruction_set(), threads, CFT_VERSION);
}

MachineLimits LimitsFlags::get(int threads) const {
  const auto measure = [threads]() -> Result<MachineLimits> { return measure_limits(threads); };
  return *cached_limits(limits_file(), limits_key(threads), anew, measure);
}

std::string summary(const MachineLimits& limits) {
  std::string text =
      fmt::format("{}, {} threads, code for {}; measured {}, load {:.1f}\n", cpu_name(),
                  limits.threads, limits.instruction_set, limits.measured, limits.load);
  text += fmt::format("  float32 {:.0f} GFLOP/s ({:.0f} a thread)", limits.float32,
                      limits.float32_thread);
  if (limits.bf16 > 0) {
    text += fmt::format(", bf16 on AMX {:.0f} ({:.0f}, {})", limits.bf16, limits.bf16_thread,
                        limits.amx);
  }
  text += "\n  GB/s read, copied:";
  const char* between = " ";
  for (const MemoryLevel& level : limits.levels) {
    text += fmt::format("{}{} {:.0f}, {:.0f}", std::exchange(between, "; "), level.name,
                        level.rate.read, level.rate.copy);
  }
  return text + "\n";
}

}  // namespace cafetiere
