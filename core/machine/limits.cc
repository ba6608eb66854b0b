// SPDX-License-Identifier: Apache-2.0
#include "core/machine/limits.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <fstream>

#include "core/device/amx.h"
#include "core/device/isa.h"
#include "core/machine/amx.h"
#include "core/machine/multiply_adds.h"

namespace cafetiere {
namespace {

constexpr int64_t kMiB = 1 << 20;
constexpr double kSeconds = 0.05;  // a figure

/// The bytes of the first processor's data cache of this level, as the kernel has them or, where it has
/// not, as they usually are.
int64_t cache_bytes(int wanted, int64_t usual) {
  for (int index = 0; index < 10; ++index) {
    const std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
    int level = 0;
    int64_t kib = 0;  // "32768K"
    std::ifstream(folder + "level") >> level;
    if (level == wanted && std::ifstream(folder + "size") >> kib) return kib * 1024;
  }
  return usual;
}

std::vector<MemoryLevel> measure_levels(Crew& crew) {
  const int64_t l2 = cache_bytes(2, kMiB) * crew.threads();
  const int64_t l3 = cache_bytes(3, 16 * kMiB);
  const int64_t installed = int64_t(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  // Twice the last cache, as far as that leaves the machine its memory and us our two seconds.
  const int64_t beyond = std::min({std::max(2 * l3, 64 * kMiB), 512 * kMiB, installed / 16});
  std::vector<MemoryLevel> levels{{"L2", l2, measure_bandwidth(crew, l2 / 2, false, kSeconds)}};
  if (l3 > 2 * l2) levels.push_back({"L3", l3, measure_bandwidth(crew, l3 / 2, true, kSeconds)});
  levels.push_back({"memory", installed, measure_bandwidth(crew, beyond, true, 2 * kSeconds)});
  return levels;
}

std::string now() { return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))); }

}  // namespace

MachineLimits measure_limits(int threads) {
  Crew crew(threads);
  MachineLimits limits;
  limits.instruction_set = instruction_set();
  limits.threads = threads;
  const auto float32 = [&](int = 0) { return multiply_adds(limits.instruction_set); };
  limits.float32_thread = Crew::best_rate(float32, kSeconds) / 1e9;
  limits.float32 = crew.rate(float32, kSeconds) / 1e9;
  if (amx_permitted()) {
    limits.bf16_thread = Crew::best_rate(amx_products, kSeconds) / 1e9;
    limits.bf16 = crew.rate([](int) { return amx_products(); }, kSeconds) / 1e9;
    limits.amx = look_at_amx(threads).name;
  }
  limits.levels = measure_levels(crew);
  limits.measured = now();
  double load = 0;
  if (::getloadavg(&load, 1) == 1) limits.load = load;
  return limits;
}

Roofline roofline(const StepWork& work, const MachineLimits& limits) {
  const double rate = work.bf16 && limits.bf16 > 0 ? limits.bf16 : limits.float32;
  Roofline least;
  if (work.flops > 0 && rate > 0) least = {work.flops / rate / 1e9, "compute"};
  const auto level = std::find_if(limits.levels.begin(), limits.levels.end(),
                                  [&](const MemoryLevel& l) { return work.bytes <= l.bytes; });
  if (level == limits.levels.end() || level->rate.best() <= 0) return least;
  const double moving = double(work.bytes) / level->rate.best() / 1e9;
  return moving > least.seconds ? Roofline{moving, level->name} : least;
}

}  // namespace cafetiere
