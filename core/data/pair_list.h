// SPDX-License-Identifier: Apache-2.0
// Lists of images with label images: one "path path" per line.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

struct PairEntry {
  std::string image, label;  ///< as written; `label` is empty if the list has none
  int line = 0;              ///< 1-based, for messages
};

/// Reads a list with `words` words per line, 1 or 2, separated by blanks. Empty lines are skipped.
/// A line with another number of words and an empty list are errors.
Result<std::vector<PairEntry>> read_pair_list(const std::string& path, int words);

}  // namespace cafetiere
