// SPDX-License-Identifier: Apache-2.0
// RowBudget: the memory that rows may use, and where the rest of them goes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace cafetiere {

/// Shared by all row stores of a process. Thread-safe.
class RowBudget {
 public:
  /// `limit`: bytes of rows in memory. `folder`: must support shared mappings, as local disks do.
  RowBudget(uint64_t limit, std::string folder) : limit_(limit), folder_(std::move(folder)) {}

  /// Reserves `bytes` of memory if the limit allows.
  bool take(size_t bytes);
  void give_back(size_t bytes) { taken_ -= bytes; }

  /// Maps `bytes` zeroed bytes of a new file in the folder. The disk space is reserved, so that a
  /// full disk is an error here and not a SIGBUS later. The file is already unlinked, so it
  /// disappears with the mapping (munmap()) or with the process.
  Result<std::byte*> map_file(size_t bytes) const;

 private:
  const uint64_t limit_;
  const std::string folder_;
  std::atomic<uint64_t> taken_{0};
};

}  // namespace cafetiere
