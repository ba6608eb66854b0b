// SPDX-License-Identifier: Apache-2.0
#include "core/data/random_size.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/data/draws.h"
#include "core/data/image_resample.h"

namespace cafetiere {
namespace {

constexpr uint32_t kLongestSide = 1 << 13;

}  // namespace

Result<std::optional<RandomSize>> RandomSize::make(const caffe::TransformationParameter& param) {
  if (!param.has_random_resize_param() && !param.has_random_aspect_ratio_param()) {
    return std::optional<RandomSize>();
  }
  if (param.has_random_resize_param() && param.has_random_aspect_ratio_param()) {
    return invalid_argument(
        "transform_param: random_resize_param and random_aspect_ratio_param are both given; keep "
        "one of them");
  }
  if (param.crop_size() < 1 || param.crop_size() > kLongestSide || param.has_mean_file()) {
    return invalid_argument(
        fmt::format("transform_param: images of random size need a crop_size of 1 to {}, and "
                    "mean_value in place of mean_file",
                    kLongestSide));
  }
  RandomSize r;
  r.crop_ = int(param.crop_size());
  r.parts_ = param.has_random_aspect_ratio_param();
  const caffe::ResizeParameter* resize = &param.random_resize_param().resize_param();
  if (r.parts_) {
    const caffe::RandomAspectRatioParameter& p = param.random_aspect_ratio_param();
    r.min_area_ = p.min_area_ratio(), r.max_area_ = p.max_area_ratio();
    r.change_ = p.aspect_ratio_change(), r.attempts_ = std::min(p.max_attempt(), 1000U);
    resize = &p.resize_param();
    if (!(r.min_area_ > 0 && r.min_area_ <= r.max_area_ && r.change_ > 0 && r.change_ <= 1)) {
      return invalid_argument(
          "random_aspect_ratio_param: min_area_ratio must be above 0 and not above "
          "max_area_ratio, aspect_ratio_change in (0, 1]");
    }
  } else {
    const caffe::RandomResizeParameter& p = param.random_resize_param();
    r.min_ = int(std::min(p.min_size(), kLongestSide + 1));
    r.max_ = int(std::min(p.max_size(), kLongestSide + 1));
    const bool ordered = r.max_ == 0 || r.min_ <= r.max_;
    if (!ordered || r.max_ > int(kLongestSide) || r.min_ > int(kLongestSide) ||
        (r.min_ > 0 && r.min_ < r.crop_)) {
      return invalid_argument(fmt::format(
          "random_resize_param: min_size {} and max_size {} must not be below crop_size {}, nor "
          "above {}, nor the first above the second",
          p.min_size(), p.max_size(), r.crop_, kLongestSide));
    }
  }
  for (const int mode : resize->interp_mode()) {
    r.modes_.push_back(caffe::ResizeParameter::InterpMode(mode));
  }
  return std::optional<RandomSize>(std::move(r));
}

bool RandomSize::accepts(int64_t height, int64_t width) const {
  const int64_t shorter = std::min(height, width), longer = std::max(height, width);
  if (shorter < 1) return false;
  const int64_t most = parts_ ? crop_ : std::max<int64_t>(max_ > 0 ? max_ : longer, min_);
  if (double(most) * double(most) * double(longer) / double(shorter) > double(kMaxImagePixels)) {
    return false;
  }
  return parts_ || min_ > 0 || shorter >= crop_;
}

caffe::ResizeParameter::InterpMode RandomSize::mode(Draws& draws) const {
  if (modes_.empty()) return caffe::ResizeParameter::LINEAR;
  return modes_[draws.below(uint32_t(modes_.size()))];
}

Image RandomSize::apply(const Image& image, Draws& draws) const {
  if (parts_) return by_part(image, draws);
  const int least = min_ > 0 ? min_ : std::min(image.height, image.width);
  const int most = std::max(least, max_ > 0 ? max_ : std::max(image.height, image.width));
  return by_shorter_side(image, least + int(draws.below(uint32_t(most - least + 1))), draws);
}

Image RandomSize::by_shorter_side(const Image& image, int side, Draws& draws) const {
  int h = side, w = side;
  if (image.height < image.width) {
    w = int(float(image.width) / float(image.height) * float(side));
  } else {
    h = int(float(image.height) / float(image.width) * float(side));
  }
  return resample(image, h, w, mode(draws));
}

Image RandomSize::by_part(const Image& image, Draws& draws) const {
  const float side = std::sqrt(float(image.height) * float(image.width));
  for (uint32_t attempt = 0; attempt < attempts_; ++attempt) {
    const float scale = side * std::sqrt(draws.between(min_area_, max_area_));
    const float change = draws.between(change_, 1 / change_);
    int h = int(scale * change), w = int(scale / change);
    if (draws.chance(0.5F)) std::swap(h, w);
    const float down = draws.unit(), right = draws.unit();
    if (h < 1 || w < 1 || h > image.height || w > image.width) continue;
    const int top = std::min(int(down * float(image.height - h + 1)), image.height - h);
    const int left = std::min(int(right * float(image.width - w + 1)), image.width - w);
    return resample(part_of(image, top, left, h, w), crop_, crop_, mode(draws));
  }
  return by_shorter_side(image, crop_, draws);
}

}  // namespace cafetiere
