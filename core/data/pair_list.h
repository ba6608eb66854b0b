// SPDX-License-Identifier: Apache-2.0
// Lists of images with label images: "path path" a line.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

struct PairEntry {
  std::string image, label;  ///< as written; no label where a list has none
  int line = 0;              ///< 1-based, for messages
};

/// Reads a list of so many words a line, 1 or 2, between blanks. Empty lines are skipped. A line of
/// another number of words, and a list without entries, are errors that name the line.
Result<std::vector<PairEntry>> read_pair_list(const std::string& path, int words);

}  // namespace cafetiere
