// SPDX-License-Identifier: Apache-2.0
#include "cli/machine.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/base/split_list.h"
#include "core/device/amx.h"

namespace cafetiere {
namespace {

namespace fs = std::filesystem;

/// Cores of one group; 0: no quota, which is "max" or negative.
double quota_v2(const fs::path& group) {
  double quota = 0, period = 0;
  std::ifstream file(group / "cpu.max");
  return file >> quota >> period ? quota / period : 0;
}

double quota_v1(const fs::path& group) {
  double quota = 0, period = 0;
  std::ifstream(group / "cpu.cfs_quota_us") >> quota;
  std::ifstream(group / "cpu.cfs_period_us") >> period;
  return period > 0 ? quota / period : 0;
}

/// The least quota of a group and of those around it. Within a container the path may be the host's,
/// and the mount the container's own group.
int least_quota(const fs::path& mount, fs::path path, double (*quota_of)(const fs::path&)) {
  double least = 0;
  for (path = path.relative_path();; path = path.parent_path()) {
    const double quota = quota_of(mount / path);
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
    if (path.empty()) return int(std::ceil(least));
  }
}

}  // namespace

int quota_cores(const std::string& root) {
  const fs::path mounts = fs::path(root) / "sys/fs/cgroup";
  std::ifstream groups(fs::path(root) / "proc/self/cgroup");
  int least = 0;
  for (std::string line; std::getline(groups, line);) {  // number:controllers:path
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string path = line.substr(second + 1);
    const auto controllers = split_list(line.substr(first + 1, second - first - 1));
    int quota = 0;
    if (second == first + 1) {
      quota = least_quota(mounts, path, quota_v2);
    } else if (std::ranges::find(controllers, "cpu") != controllers.end()) {
      quota = least_quota(mounts / "cpu", path, quota_v1);
    }
    if (quota > 0) least = least > 0 ? std::min(least, quota) : quota;
  }
  return least;
}

int usable_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return 1;
  const int allowed = std::max(1, CPU_COUNT(&cores)), quota = quota_cores("/");
  return quota > 0 ? std::min(quota, allowed) : allowed;
}

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != line.npos) return line.substr(colon + 2);
  }
  return "unknown";
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> sets;
#if defined(__x86_64__)
  const auto add = [&](bool there, const char* name) {
    if (there) sets.emplace_back(name);
  };
  add(__builtin_cpu_supports("avx2"), "avx2");
  add(__builtin_cpu_supports("fma"), "fma");
  add(__builtin_cpu_supports("avx512f"), "avx512f");
  add(__builtin_cpu_supports("avx512vnni"), "avx512vnni");
  add(__builtin_cpu_supports("avx512bf16"), "avx512bf16");
  add(amx_permitted(), "amx");
#elif defined(__aarch64__)
  sets.emplace_back("neon");  // a part of every ARMv8-A
#endif
  return sets;
}

}  // namespace cafetiere
