// SPDX-License-Identifier: Apache-2.0
// Window files: images with labelled rectangles, as written by R-CNN.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/status.h"

namespace cafetiere {

/// A rectangle of an image; x2 and y2 are inclusive.
struct Window {
  int image = 0;  ///< index into WindowList::images
  int label = 0;
  float overlap = 0;  ///< with the best-matching object, from 0 to 1
  int x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  int line = 0;  ///< 1-based, for messages
};

struct WindowImage {
  std::string path;  ///< as written
  int channels = 0;
};

struct WindowList {
  std::vector<WindowImage> images;
  std::vector<Window> windows;
};

/// Reads entries of the form "# index, path, channels, height, width, number of windows", each
/// followed by that many of "label overlap x1 y1 x2 y2", separated by any white space. An error
/// names the line.
Result<WindowList> read_window_list(const std::string& path);

}  // namespace cafetiere
