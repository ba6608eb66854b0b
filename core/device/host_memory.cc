// SPDX-License-Identifier: Apache-2.0
#include "core/device/host_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace cafetiere {

Result<Memory> allocate_host(int64_t wanted) {
  const size_t bytes = size_t(std::max<int64_t>(wanted, 1));
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Status(ErrorCode::kOutOfMemory,
                  "cannot allocate " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
  }
  madvise(memory, bytes, MADV_HUGEPAGE);  // best effort: failure only costs time
  std::memset(memory, 0, bytes);          // touched once here, not in the first step
  return Memory(static_cast<std::byte*>(memory), [bytes](std::byte* at) { munmap(at, bytes); });
}

Result<std::shared_ptr<float>> allocate_host_floats(int64_t floats) {
  CFT_ASSIGN(Memory memory, allocate_host(floats * int64_t(sizeof(float))));
  return std::reinterpret_pointer_cast<float>(std::move(memory));
}

}  // namespace cafetiere
