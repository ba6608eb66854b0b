// SPDX-License-Identifier: Apache-2.0
// SharedMemory: memory that other processes of the host can map.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/base/status.h"
#include "core/comm/socket.h"

namespace cafetiere {

/// A mapped memfd, initially zero, on huge pages if the system provides them. It cannot shrink, so
/// every process that maps it can read all of it.
class SharedMemory {
 public:
  /// How another process of the host finds it. `id` distinguishes it from another file with the
  /// same descriptor number.
  struct Place {
    int32_t pid = 0, fd = -1;
    uint64_t bytes = 0, id = 0;
  };

  /// An error if the system refuses: kOutOfMemory, or kIo if memfd_create() is forbidden.
  static Result<std::shared_ptr<SharedMemory>> create(size_t bytes);
  /// Maps the memory of another process; an error if it does not exist or the system forbids it.
  /// Read-only unless `writable`.
  static Result<std::shared_ptr<SharedMemory>> open(const Place& place, bool writable);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return place_.bytes; }
  /// Its place; only in the process that created it, until drop_fd().
  const Place& place() const { return place_; }
  /// Closes the descriptor once the others have opened it, or never will.
  void drop_fd() { fd_ = Fd(); }

  bool holds(const void* begin, size_t bytes) const {
    const auto* first = static_cast<const std::byte*>(begin);
    return first >= data_ && bytes <= size() && size_t(first - data_) <= size() - bytes;
  }

 private:
  SharedMemory(std::byte* data, const Place& place, Fd fd)
      : data_(data), place_(place), fd_(std::move(fd)) {}

  std::byte* const data_;
  const Place place_;
  Fd fd_;
};

}  // namespace cafetiere
