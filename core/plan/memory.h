// SPDX-License-Identifier: Apache-2.0
// Assigns every buffer of a program a place in one arena; buffers whose lives do not overlap share.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/base/status.h"
#include "core/device/program.h"

namespace cafetiere {

/// Floats: four cache lines, so that buffers of different steps never share one.
inline constexpr int64_t kBufferAlign = 64;

/// Floats that a buffer takes.
int64_t placed_size(int64_t floats);

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< floats, one a buffer; -1 for external and unused ones
  int64_t floats = 0;
};

/// A place for every buffer that a step uses.
MemoryPlan place(const Program& program);

/// Floats in one piece; knows how to free itself.
using Arena = std::unique_ptr<float, std::function<void(float*)>>;

/// Zero-filled memory on huge pages where the system has them: page faults are dear. Fails with
/// kOutOfMemory.
Result<Arena> allocate_arena(int64_t floats);

}  // namespace cafetiere
