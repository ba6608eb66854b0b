// SPDX-License-Identifier: Apache-2.0
// Assigns each buffer of a program an offset in the arena of its memory; buffers that are not live
// at the same time share memory.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/program.h"

namespace cafetiere {

/// Bytes: four cache lines, so that buffers of different steps never share a line.
inline constexpr int64_t kBufferAlign = 256;

/// Bytes that a buffer occupies.
int64_t placed_size(int64_t bytes);

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< bytes, per buffer; -1 for external and unused buffers
  int64_t bytes = 0;             ///< host memory
  int64_t device_bytes = 0;      ///< device memory
  int64_t fixed_bytes = 0;       ///< results of hoisted steps that other steps read
};

/// Places every buffer that a step uses.
MemoryPlan place(const Program& program);

}  // namespace cafetiere
