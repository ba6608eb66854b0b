// SPDX-License-Identifier: Apache-2.0
#include "core/data/byte_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cafetiere {
namespace {

class MappedFile : public MemoryFile {
 public:
  explicit MappedFile(std::string_view bytes) : MemoryFile(bytes), bytes_(bytes) {}
  ~MappedFile() override {
    if (!bytes_.empty()) munmap(const_cast<char*>(bytes_.data()), bytes_.size());
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

 private:
  std::string_view bytes_;
};

}  // namespace

Result<std::unique_ptr<ByteFile>> map_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  void* memory = MAP_FAILED;
  if (fd >= 0 && fstat(fd, &info) == 0) {
    const auto size = static_cast<size_t>(info.st_size);
    memory = size == 0 ? nullptr : mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  if (memory == MAP_FAILED) {
    return io_error(fmt::format("{}: cannot be read: {}", path, std::strerror(error)));
  }
  return std::unique_ptr<ByteFile>(new MappedFile(
      std::string_view(static_cast<const char*>(memory), static_cast<size_t>(info.st_size))));
}

}  // namespace cafetiere
