// SPDX-License-Identifier: Apache-2.0
// What this machine can compute with.
#pragma once

#include <string>
#include <vector>

namespace cafetiere {

/// Cores that this process may run on, at least 1: those of its affinity, or what the quota of its
/// cgroup is worth where that is less.
int usable_cores();

/// What the least CPU quota of the cgroups that this process is in is worth, in cores, rounded up; 0
/// without one. `root` is where proc and sys are.
int quota_cores(const std::string& root);

/// The processor's name, or "unknown".
std::string cpu_name();

/// The vector instruction sets that matter here, the oldest first.
std::vector<std::string> instruction_sets();

}  // namespace cafetiere
