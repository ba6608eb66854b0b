// SPDX-License-Identifier: Apache-2.0
// RowBudget: how much memory rows may take, and where the rest of them goes.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/status.h"

namespace cafetiere {

/// Shared by the stores of rows of a process. Any thread.
class RowBudget {
 public:
  /// `limit`: bytes of rows in memory. `folder`: must allow shared mappings, as local disks do.
  RowBudget(uint64_t limit, std::string folder) : limit_(limit), folder_(std::move(folder)) {}

  /// Takes memory for so many bytes if the limit allows it.
  bool take(size_t bytes);
  void give_back(size_t bytes) { taken_ -= bytes; }

  /// Maps so many bytes of a new file in the folder, zeroed. All of them have their place on the
  /// disk: a full one is an error here, and not a SIGBUS later. The file has no name any more, so
  /// that it ends with the mapping, which munmap() ends, or with the process.
  Result<std::byte*> map_file(size_t bytes) const;

 private:
  const uint64_t limit_;
  const std::string folder_;
  std::atomic<uint64_t> taken_{0};
};

}  // namespace cafetiere
