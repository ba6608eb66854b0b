// SPDX-License-Identifier: Apache-2.0
// Resizing of images in all modes of SSD's resize_param; parts of images, and mirrored ones.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/box.h"
#include "core/base/status.h"
#include "core/data/draws.h"
#include "core/data/image.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Resizes like OpenCV's INTER_* mode of that name: LINEAR with identical bytes, the others with a
/// difference of at most 1, since OpenCV's results depend on the machine. Sizes must be at least 1.
Image resample(const Image& image, int height, int width, caffe::ResizeParameter::InterpMode mode);

/// A rectangle of an image, which must contain it.
Image part_of(const Image& image, int top, int left, int height, int width);

/// Swaps left and right.
void mirror(Image* image);

/// Resizes images according to a resize_param.
class Resizer {
 public:
  /// Rejects sizes of 0 or too large, and FIT_SMALL_SIZE, whose results differ in size.
  static Result<Resizer> make(const caffe::ResizeParameter& param);

  /// `objects`: boxes in coordinates relative to the image; they are transformed with it. Draws one
  /// of the configured interpolation modes, LINEAR if there are none.
  Image apply(const Image& image, Draws& draws, std::vector<Box>* objects) const;

  int64_t height() const { return height_; }
  int64_t width() const { return width_; }

 private:
  Resizer() = default;
  Image pad(const Image& image, int top, int left) const;

  int height_ = 0, width_ = 0;
  bool fits_ = false;  // keeps the aspect ratio and pads the rest
  caffe::ResizeParameter::PadMode pad_mode_ = caffe::ResizeParameter::CONSTANT;
  std::vector<float> pad_values_;
  std::vector<caffe::ResizeParameter::InterpMode> modes_;
};

}  // namespace cafetiere
