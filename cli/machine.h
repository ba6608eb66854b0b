// SPDX-License-Identifier: Apache-2.0
// What this machine can compute with.
#pragma once

#include <string>
#include <vector>

namespace cafetiere {

/// Cores that this process may run on, at least 1.
int usable_cores();

/// The processor's name, or "unknown".
std::string cpu_name();

/// The vector instruction sets that matter here, the oldest first.
std::vector<std::string> instruction_sets();

}  // namespace cafetiere
