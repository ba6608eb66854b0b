// SPDX-License-Identifier: Apache-2.0
// FarDevice: a device with memory of its own, made of the host's. What works on it makes every mistake
// of a plan show: nobody but its own kernels and copies can touch its memory, and they run as late as
// they may.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>

#include "core/device/ref/ref_device.h"

namespace cafetiere {

/// Kernels on a thread of their own, none before somebody waits for them.
class FarQueue : public Queue {
 public:
  FarQueue() : thread_([this] { work(); }) {}
  ~FarQueue() override;
  FarQueue(const FarQueue&) = delete;
  FarQueue& operator=(const FarQueue&) = delete;

  void submit(const Kernel& kernel) override;
  void copy(void* to, const void* from, int64_t bytes) override;
  void wait() override;

  /// Memory that is mapped PROT_NONE but while a kernel of the queue runs. The queue outlives it.
  Result<Memory> allocate(int64_t bytes);

 private:
  void work();
  void run(const Kernel& kernel);
  /// Lets the process at the memory, or shuts it out.
  void protect(int access);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<const Kernel*> kernels_;  // the first may be running
  bool due_ = false, stop_ = false;
  std::map<void*, size_t> regions_;  // bytes by address
  std::thread thread_;
};

/// Has far kernels of RefDevice's operations and of element-wise steps, but not of those that ask for
/// the place of an element, nor of the layers' own loops.
class FarDevice : public RefDevice {
 public:
  const char* name() const override { return "far"; }
  Result<Memory> allocate(Space space, int64_t bytes) override;
  Queue* queue() override { return &queue_; }
  Space space_of(const Step& step) const override;

 private:
  FarQueue queue_;
};

}  // namespace cafetiere
