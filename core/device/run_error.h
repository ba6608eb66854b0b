// SPDX-License-Identifier: Apache-2.0
// RunError: error reporting for kernels.
#pragma once

#include <mutex>
#include <utility>

#include "core/base/status.h"

namespace cafetiere {

/// The first error of the kernels of a run. Other kernels continue, since blocks do not wait for
/// each other; the plan returns the error when all have finished.
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
