// SPDX-License-Identifier: Apache-2.0
#include "core/data/window_crop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/data/image_resample.h"

namespace cafetiere {
namespace {

/// A window along one axis, in single precision to round like Caffe.
struct Span {
  int64_t first, last;
  static Span around(float center, float half) {
    return {std::llround(center - half), std::llround(center + half)};
  }
};

/// The span's position within [0, size), mapped to an axis of `crop` results.
struct Placed {
  int first, count, to_count, before, after;
};

Placed place(const Span& span, int size, int crop) {
  const int64_t before = std::max<int64_t>(0, -span.first);
  const int64_t after = std::max<int64_t>(0, span.last - size + 1);
  const int64_t count = span.last - span.first + 1 - before - after;
  if (count < 1) return {};
  const float scale = float(crop) / float(span.last - span.first + 1);
  const auto scaled = [&](int64_t n) { return int(std::lround(float(n) * scale)); };
  return {int(span.first + before), int(count), scaled(count), scaled(before), scaled(after)};
}

}  // namespace

Result<WindowCrop> crop_window(const Window& window, int height, int width,
                               const WindowCropOptions& options) {
  Span across{window.x1, window.x2}, down{window.y1, window.y2};
  if (options.pad > 0 || options.square) {
    const float context = float(options.crop) / float(options.crop - 2 * options.pad);
    float half_width = float(int64_t{window.x2} - window.x1 + 1) / 2;
    float half_height = float(int64_t{window.y2} - window.y1 + 1) / 2;
    const float center_x = float(window.x1) + half_width;
    const float center_y = float(window.y1) + half_height;
    if (options.square) half_width = half_height = std::max(half_width, half_height);
    across = Span::around(center_x, half_width * context);
    down = Span::around(center_y, half_height * context);
  }
  const Placed x = place(across, width, options.crop), y = place(down, height, options.crop);
  if (x.count < 1 || y.count < 1) {
    return invalid_argument(
        fmt::format("the window ({}, {}) to ({}, {}) is empty or outside the "
                    "image of {} x {} (height x width)",
                    window.x1, window.y1, window.x2, window.y2, height, width));
  }
  WindowCrop crop{x.first, y.first, x.count, y.count, x.to_count, y.to_count, 0, y.before};
  crop.left = options.mirrored ? x.after : x.before;
  // Rounding may exceed the crop by a pixel, or leave nothing of a thin window.
  crop.left = std::min(crop.left, options.crop - 1),
  crop.top = std::min(crop.top, options.crop - 1);
  crop.to_width = std::clamp(crop.to_width, 1, options.crop - crop.left);
  crop.to_height = std::clamp(crop.to_height, 1, options.crop - crop.top);
  return crop;
}

Image cut_out(const Image& image, const WindowCrop& crop, bool mirrored) {
  const Image part = part_of(image, crop.y, crop.x, crop.height, crop.width);
  Image out = resize_image(part, crop.to_height, crop.to_width);
  if (mirrored) mirror(&out);
  return out;
}

}  // namespace cafetiere
