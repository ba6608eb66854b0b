// SPDX-License-Identifier: Apache-2.0
// ByteFile: random access to the bytes of a file or of memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace cafetiere {

/// A file that does not change while it is read. Several threads may read concurrently.
class ByteFile {
 public:
  virtual ~ByteFile() = default;
  virtual uint64_t size() const = 0;
  /// `bytes` bytes from `offset`, all of which must be within the file: a view of memory, or copied
  /// to `buffer`. Valid as long as the file, and until `buffer` is reused.
  virtual Result<std::string_view> read(uint64_t offset, uint64_t bytes,
                                        std::string* buffer) const = 0;
};

/// Bytes in memory, which must outlive this object.
class MemoryFile : public ByteFile {
 public:
  explicit MemoryFile(std::string_view bytes) : bytes_(bytes) {}
  uint64_t size() const override { return bytes_.size(); }
  Result<std::string_view> read(uint64_t offset, uint64_t bytes, std::string*) const override {
    return bytes_.substr(offset, bytes);
  }

 private:
  std::string_view bytes_;
};

/// A local file, mapped into memory. If it is truncated while mapped, access kills the process
/// (SIGBUS).
Result<std::unique_ptr<ByteFile>> map_file(const std::string& path);

}  // namespace cafetiere
