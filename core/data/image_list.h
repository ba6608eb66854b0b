// SPDX-License-Identifier: Apache-2.0
// Lists of image files with labels: one "path label" per line.
#pragma once

#include <string>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

struct ImageEntry {
  std::string path;  ///< as written
  int label = 0;
  int line = 0;  ///< 1-based, for messages
};

/// Reads a list; a line is split at its last blank, so that paths may contain blanks. Empty lines
/// are skipped. An empty list and a label that is not an integer are errors; the latter names the
/// line.
Result<std::vector<ImageEntry>> read_image_list(const std::string& path);

}  // namespace cafetiere
