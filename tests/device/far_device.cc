// SPDX-License-Identifier: Apache-2.0
#include "tests/device/far_device.h"

#include <sys/mman.h>

#include <cstring>

namespace cafetiere {

FarQueue::~FarQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FarQueue::submit(const Kernel& kernel) {
  const std::lock_guard lock(mutex_);
  kernels_.push_back(&kernel);
}

void FarQueue::copy(void* to, const void* from, int64_t bytes) {
  std::memcpy(to, from, size_t(bytes));
}

void FarQueue::wait() {
  std::unique_lock lock(mutex_);
  due_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return kernels_.empty(); });
  due_ = false;
}

void FarQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || (due_ && !kernels_.empty()); });
    if (stop_) return;
    const Kernel& kernel = *kernels_.front();
    lock.unlock();
    run(kernel);
    lock.lock();
    kernels_.pop_front();
    if (kernels_.empty()) changed_.notify_all();
  }
}

void FarQueue::run(const Kernel& kernel) {
  protect(PROT_READ | PROT_WRITE);
  for (int block = 0; block < kernel.blocks; ++block) kernel.run(block);
  protect(PROT_NONE);
}

void FarQueue::protect(int access) {
  const std::lock_guard lock(mutex_);
  for (const auto& [address, bytes] : regions_) mprotect(address, bytes, access);
}

Result<Memory> FarQueue::allocate(int64_t bytes) {
  void* const at = mmap(nullptr, size_t(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return Status(ErrorCode::kOutOfMemory, "no far memory");
  const std::lock_guard lock(mutex_);
  regions_[at] = size_t(bytes);
  return Memory(static_cast<std::byte*>(at), [this](std::byte* memory) {
    const std::lock_guard lock(mutex_);
    munmap(memory, regions_.at(memory));
    regions_.erase(memory);
  });
}

Result<Memory> FarDevice::allocate(Space space, int64_t bytes) {
  return space == Space::kDevice ? queue_.allocate(bytes) : RefDevice::allocate(space, bytes);
}

Space FarDevice::space_of(const Step& step) const {
  for (const char* kernel : {"ref", "map ", "channel map "}) {
    if (step.kernel.starts_with(kernel)) return Space::kDevice;
  }
  return Space::kHost;
}

}  // namespace cafetiere
