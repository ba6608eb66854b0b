// SPDX-License-Identifier: Apache-2.0
#include "core/observe/jsonl.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

namespace cafetiere {
namespace {

/// Cuts off what follows the last line end: a run that was killed, or whose disk was full, may have
/// left half a line, and the next object would go on with it.
void cut_half_line(const std::string& path) {
  std::error_code error;  // what matters is whether the file can be opened
  if (!std::filesystem::is_regular_file(path, error)) return;
  const uintmax_t size = std::filesystem::file_size(path, error);
  if (error) return;
  std::ifstream file(path, std::ios::binary);
  std::array<char, 4096> block;
  uintmax_t end = size, lines = 0;  // bytes
  while (file && end > 0 && lines == 0) {
    const uintmax_t begin = end - std::min<uintmax_t>(end, block.size());
    file.seekg(std::streamoff(begin));
    file.read(block.data(), std::streamsize(end - begin));
    const size_t found = std::string_view(block.data(), size_t(end - begin)).rfind('\n');
    if (found != std::string_view::npos) lines = begin + found + 1;
    end = begin;
  }
  if (file && lines < size) std::filesystem::resize_file(path, lines, error);
}

}  // namespace

Result<std::unique_ptr<JsonlSink>> JsonlSink::open(const std::string& path, Logger log) {
  cut_half_line(path);
  CFT_ASSIGN(EventFile file, EventFile::open(path, "ae", "event log", std::move(log)));
  return std::unique_ptr<JsonlSink>(new JsonlSink(std::move(file)));
}

}  // namespace cafetiere
