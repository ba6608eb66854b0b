// SPDX-License-Identifier: Apache-2.0
// Maps a window of an image to a net's input.
#pragma once

#include "core/data/image.h"
#include "core/data/window_list.h"

namespace cafetiere {

/// The part of the window inside the image, the size it is warped to, and the position of its upper
/// left corner in the crop.
struct WindowCrop {
  int x = 0, y = 0, width = 0, height = 0;  ///< in the image
  int to_width = 0, to_height = 0;          ///< in the crop
  int left = 0, top = 0;
};

struct WindowCropOptions {
  int crop = 0;         ///< side of the result in pixels
  int pad = 0;          ///< pixels of context on each side of the window, within the result
  bool square = false;  ///< crop the tightest square around the window
  bool mirrored = false;
};

/// Enlarges a window so that, warped to the crop, it is surrounded by the context (Girshick et al.,
/// "Rich feature hierarchies", 2014, appendix A), and clips it to the image. An error if no part of
/// it is inside.
Result<WindowCrop> crop_window(const Window& window, int height, int width,
                               const WindowCropOptions& options);

/// That part of the image, warped and, if `mirrored`, mirrored.
Image cut_out(const Image& image, const WindowCrop& crop, bool mirrored);

}  // namespace cafetiere
