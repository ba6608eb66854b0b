// SPDX-License-Identifier: Apache-2.0
#include "core/observe/jsonl.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

namespace cafetiere {
namespace {

constexpr uintmax_t kLongestObject = 16 << 20;

/// Where the last line begins, in bytes: after the last line end.
uintmax_t last_line(std::ifstream& file, uintmax_t size) {
  std::array<char, 4096> block;
  for (uintmax_t end = size; file && end > 0;) {
    const uintmax_t begin = end - std::min<uintmax_t>(end, block.size());
    file.seekg(std::streamoff(begin));
    file.read(block.data(), std::streamsize(end - begin));
    const size_t found = std::string_view(block.data(), size_t(end - begin)).rfind('\n');
    if (found != std::string_view::npos) return begin + found + 1;
    end = begin;
  }
  return 0;
}

/// A run that was killed, or whose disk was full, may have left a part of an object as the last
/// line: it is cut off. Another line without an end gets one. Both so that the next object does not
/// go on with it.
void end_last_line(const std::string& path) {
  std::error_code error;  // what matters is whether the file can be opened
  if (!std::filesystem::is_regular_file(path, error)) return;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return;
  std::ifstream file(path, std::ios::binary);
  const uintmax_t begin = last_line(file, size);
  if (!file || begin == size) return;
  // Longer than any event: not read into memory.
  std::string line(size - begin <= kLongestObject ? size_t(size - begin) : 0, '\0');
  file.seekg(std::streamoff(begin));
  if (!file.read(line.data(), std::streamsize(line.size()))) return;
  if (line.starts_with('{') && !nlohmann::json::accept(line)) {
    std::filesystem::resize_file(path, begin, error);
  } else {
    std::ofstream(path, std::ios::binary | std::ios::app) << '\n';
  }
}

}  // namespace

Result<std::unique_ptr<JsonlSink>> JsonlSink::open(const std::string& path, Logger log) {
  end_last_line(path);
  CFT_ASSIGN(EventFile file, EventFile::open(path, "ae", "event log", std::move(log)));
  return std::unique_ptr<JsonlSink>(new JsonlSink(std::move(file)));
}

}  // namespace cafetiere
