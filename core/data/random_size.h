// SPDX-License-Identifier: Apache-2.0
// RandomSize: Intel's random_resize_param and random_aspect_ratio_param, applied before a crop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/data/image.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

class Draws;

/// Resizes an image so that its shorter side has a random length, or resizes a random part of it to
/// the size of the crop that follows.
class RandomSize {
 public:
  /// Empty if neither field is set. Rejects both together, and sizes smaller than the crop.
  static Result<std::optional<RandomSize>> make(const caffe::TransformationParameter& param);

  /// Whether an image of this size still contains the crop afterwards.
  bool accepts(int64_t height, int64_t width) const;
  Image apply(const Image& image, Draws& draws) const;

 private:
  RandomSize() = default;
  Image by_shorter_side(const Image& image, int side, Draws& draws) const;
  Image by_part(const Image& image, Draws& draws) const;
  caffe::ResizeParameter::InterpMode mode(Draws& draws) const;

  bool parts_ = false;
  int crop_ = 0, min_ = 0, max_ = 0;  // of the shorter side; 0 = the image's shorter or longer side
  float min_area_ = 0, max_area_ = 1, change_ = 1;
  uint32_t attempts_ = 0;
  std::vector<caffe::ResizeParameter::InterpMode> modes_;
};

}  // namespace cafetiere
