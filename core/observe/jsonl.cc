// SPDX-License-Identifier: Apache-2.0
#include "core/observe/jsonl.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace cafetiere {

Result<std::unique_ptr<JsonlSink>> JsonlSink::open(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "ae");
  if (!file) {
    return io_error(
        fmt::format("cannot open the event log '{}': {}; choose a path in a folder that "
                    "exists and can be written",
                    path, std::strerror(errno)));
  }
  return std::unique_ptr<JsonlSink>(new JsonlSink(file));
}

JsonlSink::~JsonlSink() { std::fclose(file_); }

void JsonlSink::write(const Event& event) {
  const std::string line = to_json(event) + "\n";
  std::fwrite(line.data(), 1, line.size(), file_);
  std::fflush(file_);
}

}  // namespace cafetiere
