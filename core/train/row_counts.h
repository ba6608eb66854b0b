// SPDX-License-Identifier: Apache-2.0
// RowCounts: the number of rows that a rank has trained on, by epoch.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace cafetiere {

/// Written by the training thread, readable from any thread.
class RowCounts {
 public:
  using ByEpoch = std::map<int64_t, int64_t>;

  void clear() {
    std::lock_guard lock(mutex_);
    counts_.clear();
  }
  void add(const ByEpoch& more) {
    std::lock_guard lock(mutex_);
    for (const auto& [epoch, rows] : more) counts_[epoch] += rows;
  }
  ByEpoch by_epoch() const {
    std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  ByEpoch counts_;
};

}  // namespace cafetiere
