// SPDX-License-Identifier: Apache-2.0
#include "core/observe/event_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace cafetiere {

Result<EventFile> EventFile::open(std::string path, const char* mode, const char* what,
                                  Logger log) {
  std::FILE* file = std::fopen(path.c_str(), mode);
  if (!file) {
    return io_error(
        fmt::format("cannot open the {} '{}': {}; choose a folder that exists and can be "
                    "written",
                    what, path, std::strerror(errno)));
  }
  return EventFile(file, std::move(path), what, std::move(log));
}

void EventFile::append(std::string_view bytes) {
  if (failed_) return;  // half a record lies at the end
  const bool written = std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) == bytes.size();
  if (written && std::fflush(file_.get()) == 0) return;
  failed_ = true;  // first: the log may lead back here
  log_.warning("cannot write the {} '{}': {}; the file ends here, the run continues", what_, path_,
               std::strerror(errno));
}

}  // namespace cafetiere
