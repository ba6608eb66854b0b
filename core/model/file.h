// SPDX-License-Identifier: Apache-2.0
// Whole files: read with a limit, written aside and renamed so that no reader sees half of one.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/base/status.h"

namespace cafetiere {

/// What protobuf can hold in one message, and so the largest model file in binary form.
inline constexpr int64_t kMaxFileBytes = (int64_t{1} << 31) - 1;

/// The bytes of a file. "File not found: F" when there is none; larger than `limit` is an error.
Result<std::string> read_file(const std::string& path, int64_t limit = kMaxFileBytes);

/// `path` if there is something; else the file of that name in `neighbour`'s folder, if there is one;
/// else `path`. For files that name others by paths that may not fit where they are used.
std::string find_beside(const std::string& path, const std::string& neighbour);

/// Has `write` fill a neighbouring temporary file, which is there, empty, and is then synced and renamed
/// to `path`: after a crash the old file or the new one is there, whole. A new file may be used by whom
/// `mode` and the umask allow.
Status replace_file(const std::string& path,
                    const std::function<Status(const std::string& aside)>& write,
                    mode_t mode = 0666);

/// The same with these bytes.
Status write_file(const std::string& path, std::string_view bytes, mode_t mode = 0666);

/// Moves a file, also to another file system, where it is written aside and renamed.
Status move_file(const std::string& from, const std::string& to);

}  // namespace cafetiere
