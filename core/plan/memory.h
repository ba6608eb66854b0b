// Assigns every buffer of a program a place in one arena; buffers whose lives do not overlap share.
#pragma once

#include <cstdint>
#include <vector>

#include "core/device/program.h"

namespace cafetiere {

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< floats, one a buffer; -1 for external and unused ones
  int64_t floats = 0;
};

MemoryPlan plan_memory(const Program& program);

/// Zero-filled memory on huge pages where the system has them: page faults are dear.
float* allocate_arena(int64_t floats);
void free_arena(float* arena, int64_t floats);

}  // namespace cafetiere
