// SPDX-License-Identifier: Apache-2.0
#include "core/model/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

namespace cafetiere {
namespace {

/// An owned file descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  /// Closes now, to detect a late write error.
  bool close() { return ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

Status os_error(const std::string& path, std::string_view what) {
  return io_error(
      fmt::format("{}: cannot {}: {}", path, what, std::generic_category().message(errno)));
}

Status write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error(path, "write");
    bytes.remove_prefix(static_cast<size_t>(n));
  }
  return {};
}

/// Fills a file that is there, or adds to it where it is no regular one.
Status fill(const std::string& path, std::string_view bytes) {
  Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file.get() < 0) return os_error(path, "write");
  CFT_TRY(write_all(file.get(), bytes, path));
  return file.close() ? Status() : os_error(path, "write");
}

/// Whether a path names an open file of a process, as /dev/fd/3 does.
bool is_descriptor(const std::filesystem::path& path) {
  std::error_code none;
  return std::filesystem::canonical(path.parent_path(), none).native().starts_with("/proc/");
}

/// Whether no file may take the place of what is there: a device, a pipe, or an open file, to which
/// /dev/stdout links.
bool is_special(const std::string& path) {
  std::error_code none;
  if (is_descriptor(path) || is_descriptor(std::filesystem::read_symlink(path, none))) return true;
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode);
}

Status fill_aside(const std::string& aside, const std::string& path,
                  const std::function<Status(const std::string& aside)>& write, mode_t mode) {
  // A leftover of a killed process with the same pid may be removed; anything else there, such as a
  // symbolic link put there by someone else, is not written to.
  ::unlink(aside.c_str());
  Descriptor file(
      ::open(aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (file.get() < 0) {
    const Status status = os_error(path, "create");
    return Status(status.code(),
                  status.message() + "; make sure that the directory exists and is writable");
  }
  CFT_TRY(write(aside));
  if (::fsync(file.get()) != 0 || !file.close()) return os_error(aside, "write");
  if (::rename(aside.c_str(), path.c_str()) != 0) return os_error(path, "rename to");
  return {};
}

}  // namespace

Result<std::string> read_file(const std::string& path, int64_t limit) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return not_found("File not found: " + path);
    return os_error(path, "open");
  }
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return os_error(path, "read");
  if (S_ISDIR(info.st_mode)) return invalid_argument(path + ": is a directory; name a file in it");

  // The size is only an initial guess: pipes have none, and a file may grow.
  std::string bytes(static_cast<size_t>(std::min<int64_t>(info.st_size, limit)) + 1, '\0');
  size_t used = 0;
  while (true) {
    if (used == bytes.size()) bytes.resize(bytes.size() * 2);
    const ssize_t n = ::read(file.get(), bytes.data() + used, bytes.size() - used);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return os_error(path, "read");
    if (n == 0) break;
    used += static_cast<size_t>(n);
    if (static_cast<int64_t>(used) > limit) {
      return invalid_argument(fmt::format("{}: is larger than the limit of {} bytes", path, limit));
    }
  }
  bytes.resize(used);
  return bytes;
}

std::string find_beside(const std::string& path, const std::string& neighbour) {
  namespace fs = std::filesystem;
  const fs::path name = fs::path(path).filename();
  const fs::path beside = fs::path(neighbour).parent_path() / name;
  std::error_code ignored;
  if (name.empty() || fs::exists(path, ignored) || !fs::exists(beside, ignored)) return path;
  return beside;
}

Status replace_file(const std::string& path,
                    const std::function<Status(const std::string& aside)>& write, mode_t mode) {
  if (is_special(path)) return write(path);
  const std::string aside = fmt::format("{}.{}.tmp", path, ::getpid());
  Status status = fill_aside(aside, path, write, mode);
  if (!status.ok()) ::unlink(aside.c_str());
  return status;
}

Status write_file(const std::string& path, std::string_view bytes, mode_t mode) {
  return replace_file(
      path, [&](const std::string& aside) { return fill(aside, bytes); }, mode);
}

Status write_files(std::span<const NewFile> files) {
  if (files.empty()) return {};
  return replace_file(files[0].path, [&](const std::string& aside) -> Status {
    CFT_TRY(fill(aside, files[0].bytes));
    return write_files(files.subspan(1));
  });
}

Status move_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) == 0) return {};
  CFT_TRY(replace_file(to, [&](const std::string& aside) -> Status {
    std::error_code error;
    std::filesystem::copy_file(from, aside, std::filesystem::copy_options::overwrite_existing,
                               error);
    if (!error) return {};
    return io_error(fmt::format("{}: cannot copy to {}: {}", from, aside, error.message()));
  }));
  ::unlink(from.c_str());
  return {};
}

}  // namespace cafetiere
