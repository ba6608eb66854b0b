// SPDX-License-Identifier: Apache-2.0
#include "core/data/row_budget.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace cafetiere {
namespace {

/// Reserves disk space; returns 0 or an error number.
int reserve_space(int file, size_t bytes) {
  int error = 0;
  do {
    error = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  return error;
}

}  // namespace

bool RowBudget::take(size_t bytes) {
  uint64_t taken = taken_.load();
  do {
    if (bytes > limit_ || taken > limit_ - bytes) return false;
  } while (!taken_.compare_exchange_weak(taken, taken + bytes));
  return true;
}

Result<std::byte*> RowBudget::map_file(size_t bytes) const {
  std::string name = folder_ + "/cafetiere-rows-XXXXXX";
  int error = 0;
  void* mapping = MAP_FAILED;
  const int file = mkostemp(name.data(), O_CLOEXEC);
  if (file < 0) {
    error = errno;
  } else {
    unlink(name.c_str());
    error = reserve_space(file, bytes);
    if (error == 0) {
      mapping = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
      if (mapping == MAP_FAILED) error = errno;
    }
    close(file);  // the mapping keeps the file alive
  }
  if (error == 0) return static_cast<std::byte*>(mapping);
  return io_error(
      fmt::format("rows have {} MiB of memory, and a file of {} MiB for those beyond could not be "
                  "made in '{}': "
                  "{}; make room there, or allow rows more memory",
                  limit_ >> 20, bytes >> 20, folder_, std::strerror(error)));
}

}  // namespace cafetiere
