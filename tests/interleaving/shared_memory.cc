// SPDX-License-Identifier: Apache-2.0
// core/comm/shared_memory.h without the system's help: thousands of runs a second need memory of their
// own, and both sides of a run live in one process.
#include "core/comm/shared_memory.h"

#include <cstring>

namespace cafetiere {
namespace {

constexpr size_t kBlocks = 8, kBlockBytes = 16 << 10;

alignas(4096) std::byte blocks[kBlocks][kBlockBytes];
bool taken[kBlocks];

}  // namespace

Result<std::shared_ptr<SharedMemory>> SharedMemory::create(size_t bytes) {
  int block = 0;
  while (taken[block]) ++block;  // a test that needs more crashes
  taken[block] = true;
  std::memset(blocks[block], 0, bytes);
  const Place place{1, block, bytes, 1};
  return std::shared_ptr<SharedMemory>(new SharedMemory(blocks[block], place, Fd()));
}

Result<std::shared_ptr<SharedMemory>> SharedMemory::open(const Place& place, bool) {
  Place same = place;
  same.pid = 0;
  return std::shared_ptr<SharedMemory>(new SharedMemory(blocks[place.fd], same, Fd()));
}

/// Of two that share a block the one that was created frees it.
SharedMemory::~SharedMemory() {
  if (place_.pid != 0) taken[place_.fd] = false;
}

}  // namespace cafetiere
