// SPDX-License-Identifier: Apache-2.0
#include "core/base/split_list.h"

namespace cafetiere {

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    text = comma == text.npos ? "" : text.substr(comma + 1);
    const size_t begin = part.find_first_not_of(" \t");
    if (begin == part.npos) continue;
    part = part.substr(begin, part.find_last_not_of(" \t") + 1 - begin);
    parts.emplace_back(part);
  }
  return parts;
}

}  // namespace cafetiere
