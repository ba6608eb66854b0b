// SPDX-License-Identifier: Apache-2.0
// RandomSize: Intel's random_resize_param and random_aspect_ratio_param, ahead of a crop.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/base/status.h"
#include "core/data/image.h"
#include "core/model/proto/caffe.pb.h"

namespace cafetiere {

class Draws;

/// Brings the shorter side of an image to a random length, or a random part of the image to the size of the
/// crop that follows.
class RandomSize {
 public:
  /// None if neither field is given. Refuses both, and sizes that the crop does not fit into.
  static Result<std::optional<RandomSize>> make(const caffe::TransformationParameter& param);

  /// Whether what becomes of an image holds the crop.
  bool accepts(int64_t height, int64_t width) const;
  Image apply(const Image& image, Draws& draws) const;

 private:
  RandomSize() = default;
  Image by_shorter_side(const Image& image, int side, Draws& draws) const;
  Image by_part(const Image& image, Draws& draws) const;
  caffe::ResizeParameter::InterpMode mode(Draws& draws) const;

  bool parts_ = false;
  int crop_ = 0, min_ = 0, max_ = 0;  // of the shorter side; 0 = the image's shorter or longer one
  float min_area_ = 0, max_area_ = 1, change_ = 1;
  uint32_t attempts_ = 0;
  std::vector<caffe::ResizeParameter::InterpMode> modes_;
};

}  // namespace cafetiere
