// SPDX-License-Identifier: Apache-2.0
#include "core/comm/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace cafetiere {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;  // mapped memory cannot be truncated

Status os_error(const char* what) {
  const ErrorCode code = errno == ENOMEM ? ErrorCode::kOutOfMemory : ErrorCode::kIo;
  return {code, fmt::format("shared memory: cannot {}: {}", what, errno_text(errno))};
}

Result<std::byte*> map(const Fd& fd, size_t bytes, int protection) {
  void* memory = mmap(nullptr, bytes, protection, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return os_error("map it");
  madvise(memory, bytes, MADV_HUGEPAGE);  // best effort: affects only speed
  return static_cast<std::byte*>(memory);
}

}  // namespace

Result<std::shared_ptr<SharedMemory>> SharedMemory::create(size_t bytes) {
  Fd fd(memfd_create("cafetiere", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  struct stat about {};
  if (!fd.valid() || ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0 ||
      fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0 || fstat(fd.get(), &about) != 0) {
    return os_error("make it");
  }
  CFT_ASSIGN(std::byte* const data, map(fd, bytes, PROT_READ | PROT_WRITE));
  const Place place{getpid(), fd.get(), bytes, about.st_ino};
  return std::shared_ptr<SharedMemory>(new SharedMemory(data, place, std::move(fd)));
}

Result<std::shared_ptr<SharedMemory>> SharedMemory::open(const Place& place, bool writable) {
  const std::string path = fmt::format("/proc/{}/fd/{}", place.pid, place.fd);
  // O_NONBLOCK: the path may refer to anything, such as a pipe.
  const Fd fd(::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return os_error("open it");
  // Checks the opened file, because the peer can replace the file at the path at any time.
  struct stat about {};
  if (fstat(fd.get(), &about) != 0) return os_error("find it");
  if (!S_ISREG(about.st_mode) || static_cast<uint64_t>(about.st_size) != place.bytes ||
      about.st_ino != place.id) {
    return io_error("shared memory: the peer's memory does not exist");
  }
  const int seals = fcntl(fd.get(), F_GET_SEALS);  // -1: a file that cannot have any
  if (seals < 0) return os_error("trust it");
  if ((seals & kSeals) != kSeals) {
    return io_error("shared memory: the peer's memory is not sealed and could shrink");
  }
  CFT_ASSIGN(std::byte* const data,
             map(fd, place.bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ));
  return std::shared_ptr<SharedMemory>(new SharedMemory(data, place, Fd()));
}

SharedMemory::~SharedMemory() { munmap(data_, size()); }

}  // namespace cafetiere
