// SPDX-License-Identifier: Apache-2.0
// Whole files: reading with a size limit; writing to a temporary file that is renamed, so that
// readers never see a partial file.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace cafetiere {

/// The maximum size of a protobuf message, and so of a model file in binary form.
inline constexpr int64_t kMaxFileBytes = (int64_t{1} << 31) - 1;

/// Reads a file. "File not found: F" if it does not exist; a file larger than `limit` is an error.
Result<std::string> read_file(const std::string& path, int64_t limit = kMaxFileBytes);

/// `path` if it exists; else the file of that name in `neighbour`'s folder, if it exists; else
/// `path`. For files that refer to others by paths that may be invalid on this machine.
std::string find_beside(const std::string& path, const std::string& neighbour);

/// Creates an empty temporary file beside `path`, calls `write` to fill it, then syncs it and
/// renames it to `path`: after a crash, either the old or the new file is there, complete. A new
/// file gets the permissions `mode`, restricted by the umask. A device, a pipe or a socket is
/// written itself, as are /dev/stdout and its like.
Status replace_file(const std::string& path,
                    const std::function<Status(const std::string& aside)>& write,
                    mode_t mode = 0666);

/// The same with the given bytes.
Status write_file(const std::string& path, std::string_view bytes, mode_t mode = 0666);

/// A file and what it is to hold.
struct NewFile {
  std::string path;
  std::string_view bytes;
};

/// Writes files that belong together: none is replaced before all have been written aside.
Status write_files(std::span<const NewFile> files);

/// Moves a file, also to another file system, where it is copied to a temporary file and renamed.
Status move_file(const std::string& from, const std::string& to);

}  // namespace cafetiere
