// SPDX-License-Identifier: Apache-2.0
#include "core/data/image_list.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "core/model/file.h"

namespace cafetiere {
namespace {

constexpr std::string_view kBlank = " \t\r";

bool parse_entry(std::string_view line, ImageEntry* entry) {
  const size_t blank = line.find_last_of(kBlank);
  if (blank == line.npos) return false;
  const std::string_view label = line.substr(blank + 1);
  const char* end = label.data() + label.size();
  const auto parsed = std::from_chars(label.data(), end, entry->label);
  entry->path = line.substr(0, line.find_last_not_of(kBlank, blank) + 1);
  return parsed.ec == std::errc() && parsed.ptr == end && !entry->path.empty();
}

}  // namespace

Result<std::vector<ImageEntry>> read_image_list(const std::string& path) {
  CFT_ASSIGN(const std::string text, read_file(path));
  std::vector<ImageEntry> entries;
  std::string_view left = text;
  for (int number = 1; !left.empty(); ++number) {
    const size_t end = left.find('\n');
    std::string_view line = left.substr(0, end);
    left = end == left.npos ? "" : left.substr(end + 1);
    line = line.substr(0, line.find_last_not_of(kBlank) + 1);
    if (line.empty()) continue;
    ImageEntry entry;
    entry.line = number;
    if (!parse_entry(line, &entry)) {
      return invalid_argument(
          fmt::format("{}:{}: \"{}\" is not a path, a blank and an integer label", path, number,
                      line.substr(0, 100)));
    }
    entries.push_back(std::move(entry));
  }
  if (entries.empty()) {
    return invalid_argument(path + ": the list is empty; write one \"path label\" a line");
  }
  return entries;
}

}  // namespace cafetiere
