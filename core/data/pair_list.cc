// SPDX-License-Identifier: Apache-2.0
#include "core/data/pair_list.h"

#include <fmt/format.h>

#include <sstream>

#include "core/model/file.h"

namespace cafetiere {

Result<std::vector<PairEntry>> read_pair_list(const std::string& path, int words) {
  CFT_ASSIGN(const std::string text, read_file(path));
  std::vector<PairEntry> entries;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    std::istringstream left(line);
    std::vector<std::string> found;
    for (std::string word; left >> word;) found.push_back(word);
    if (found.empty()) continue;
    if (int(found.size()) != words) {
      return invalid_argument(fmt::format(
          "{}:{}: \"{}\" is not {}", path, number, line.substr(0, 100),
          words == 1 ? "the path of an image" : "the path of an image, a blank and its label"));
    }
    found.resize(2);
    entries.push_back({found[0], found[1], number});
  }
  if (!entries.empty()) return entries;
  return invalid_argument(path + ": the list is empty; write an image and its label on each line");
}

}  // namespace cafetiere
