// SPDX-License-Identifier: Apache-2.0
// Assigns every buffer of a program an offset in the arena of its memory; buffers that are not live
// at the same time share.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/program.h"

namespace cafetiere {

/// Bytes: four cache lines, so that buffers of different steps never share one.
inline constexpr int64_t kBufferAlign = 256;

/// Bytes that a buffer takes.
int64_t placed_size(int64_t bytes);

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< bytes, one a buffer; -1 for external and unused ones
  int64_t bytes = 0;             ///< of the host's memory
  int64_t device_bytes = 0;      ///< of the device's
  int64_t fixed_bytes = 0;       ///< of what hoisted steps leave to the others
};

/// Places every buffer that a step uses.
MemoryPlan place(const Program& program);

}  // namespace cafetiere
