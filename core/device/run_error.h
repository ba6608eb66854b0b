// SPDX-License-Identifier: Apache-2.0
// RunError: how a kernel reports that it failed.
#pragma once

#include <mutex>
#include <utility>

#include "core/base/status.h"

namespace cafetiere {

/// The first error of the kernels of one run. The others go on, since blocks do not wait for each
/// other; the plan returns the error when all have ended.
class RunError {
 public:
  /// From any thread.
  void report(Status status) {
    const std::lock_guard lock(mutex_);
    if (first_.ok()) first_ = std::move(status);
  }
  /// Returns the first error and clears it.
  Status take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(first_, Status());
  }

 private:
  std::mutex mutex_;
  Status first_;
};

}  // namespace cafetiere
