// SPDX-License-Identifier: Apache-2.0
// Images brought to a size by any of the ways of SSD's resize_param.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/box.h"
#include "core/base/status.h"
#include "core/data/draws.h"
#include "core/data/image.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

/// Resizes as OpenCV's INTER_* of that name do: LINEAR with the same bytes, the others with bytes that
/// differ by at most 1 from its own, which depend on the machine. Sizes must be at least 1.
Image resample(const Image& image, int height, int width, caffe::ResizeParameter::InterpMode mode);

/// These pixels of an image, which must have them.
Image part_of(const Image& image, int top, int left, int height, int width);

/// Brings an image to the size that a resize_param states.
class Resizer {
 public:
  /// Refuses a size of 0 or one too large, and FIT_SMALL_SIZE, whose images differ in size.
  static Result<Resizer> make(const caffe::ResizeParameter& param);

  /// `objects`: boxes, as shares of the image's sides; they move with what they frame. One of the
  /// interpolations that are given is drawn, LINEAR if none is.
  Image apply(const Image& image, Draws& draws, std::vector<Box>* objects) const;

  int64_t height() const { return height_; }
  int64_t width() const { return width_; }

 private:
  Resizer() = default;
  Image pad(const Image& image, int top, int left) const;

  int height_ = 0, width_ = 0;
  bool fits_ = false;  // the sides keep their ratio, the rest is padded
  caffe::ResizeParameter::PadMode pad_mode_ = caffe::ResizeParameter::CONSTANT;
  std::vector<float> pad_values_;
  std::vector<caffe::ResizeParameter::InterpMode> modes_;
};

}  // namespace cafetiere
